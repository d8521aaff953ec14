package fault_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/fault"
	"github.com/tholehq/thole/internal/testkit/fault/faulttest"
	"github.com/tholehq/thole/internal/testkit/fault/faulttest/faults"
)

// memory is a Ledger; only what the tests call does something.
type memory struct {
	faulttest.Ledger
	sums map[faulttest.Key]int
}

func (m *memory) Add(_ context.Context, k faulttest.Key, n ...int) error {
	for _, v := range n {
		m.sums[k] += v
	}
	return nil
}

func (m *memory) Get(_ context.Context, k faulttest.Key) (int, bool, error) {
	v, ok := m.sums[k]
	return v, ok, nil
}

func (m *memory) Len() int { return len(m.sums) }

func TestFaultsBeforeAndAfterTheEffect(t *testing.T) {
	ctx := context.Background()
	type seen struct {
		err   bool
		value int
	}
	got := map[string]seen{}
	fault.Enumerate(t, func(t *testing.T, p *fault.Plan) {
		m := &memory{sums: map[faulttest.Key]int{}}
		var l faulttest.Ledger = &faults.Ledger{Next: m, Plan: p}
		err := l.Add(ctx, "a", 1, 2)
		if err == nil && l.Len() != 1 {
			t.Error("a method without an error result did not pass through")
		}
		v, ok, err2 := l.Get(ctx, "a")
		err = errors.Join(err, err2)
		if err2 != nil && (v != 0 || ok) {
			t.Errorf("a failed call returned %d, %v", v, ok)
		}
		if err != nil && !errors.Is(err, fault.Err) {
			t.Errorf("error %v", err)
		}
		got[t.Name()[strings.IndexByte(t.Name(), '/')+1:]] = seen{err != nil, m.sums["a"]}
	})
	want := map[string]seen{
		"no_fault":            {false, 3},
		"before_Ledger.Add_1": {true, 0},
		"after_Ledger.Add_1":  {true, 3},
		"before_Ledger.Get_2": {true, 3},
		"after_Ledger.Get_2":  {true, 3},
	}
	if len(got) != len(want) {
		t.Errorf("runs %v", got)
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %+v, want %+v", name, got[name], w)
		}
	}
}

func TestPlanForOneMethod(t *testing.T) {
	own := errors.New("own")
	p := &fault.Plan{Method: "Ledger.Get", At: 2, When: fault.Before, Err: own}
	l := &faults.Ledger{Next: &memory{sums: map[faulttest.Key]int{}}, Plan: p}
	for i, want := range []error{nil, own, nil} {
		if err := l.Add(context.Background(), "a", 1); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Get(context.Background(), "a"); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("call %d: %v, want %v", i+1, err, want)
		}
	}
}

// TestGeneratedFileIsFresh compiles by being in the build, and must match.
func TestGeneratedFileIsFresh(t *testing.T) {
	want, err := fault.Generate("faulttest", "github.com/tholehq/thole/internal/testkit/fault/faulttest", "Ledger", "faults")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("faulttest", "faults", "ledger_fault.go"))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("stale: run go generate ./internal/testkit/fault/... (%v)", err)
	}
}

func TestGeneratorRefusesWhatItCannotWrap(t *testing.T) {
	for src, says := range map[string]string{
		"type P interface{ M(x hidden) error }\ntype hidden int": "not exported",
		"import \"io\"\ntype P interface{ io.Closer }":           "another package",
		"type P struct{}": "not a plain interface",
		"type P interface{ M(x struct{ A int }) error }": "name the struct",
		"type Q int":                                "no type P",
		"type P[T any] interface{ M(T) error }":     "not a plain interface",
		"type P interface{ M(nowhere.Type) error }": "no import",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n\n"+src+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := fault.Generate(dir, "x/p", "P", "out"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", src, err, says)
		}
	}
}
