package keeper

// OnStep is called at each step of the start of a server that is no durable change.
func (k *Keeper) OnStep(f func(string)) { k.onStep = f }
