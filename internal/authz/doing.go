package authz

import "context"

type doing struct{}

// Doing says what a request wants to do. Whatever service touches a thing of a user for it
// holds the actor to that too: one that reads a thread for a change asks for the right to
// change it, and not only for the one to read.
func Doing(ctx context.Context, a Action) context.Context {
	return context.WithValue(ctx, doing{}, a)
}

// DoneBy is what the request of a context wants to do, "" where no request began it.
func DoneBy(ctx context.Context) Action {
	a, _ := ctx.Value(doing{}).(Action)
	return a
}

type sifting struct{}

// Sifting says that things of everybody are gone through for those that an actor may see:
// what is left out was not asked for.
func Sifting(ctx context.Context) context.Context { return context.WithValue(ctx, sifting{}, true) }

// Sifts reports whether a context is such a one.
func Sifts(ctx context.Context) bool { return ctx.Value(sifting{}) != nil }
