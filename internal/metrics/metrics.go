// Package metrics serves measurements in Prometheus's text format. Each is read
// when it is asked for, so nothing is counted twice and nothing drifts from the
// truth. It keeps no state and knows none of our nouns.
package metrics

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind of a family: whether its values can go down.
type Kind string

const (
	Gauge   Kind = "gauge"
	Counter Kind = "counter"
)

// Family is one measured thing with a value for each set of labels.
type Family struct {
	Name   string
	Help   string
	Kind   Kind
	Values []Value
}

// Value is a sample; Labels are name and value in turns.
type Value struct {
	Labels []string
	Value  float64
}

// Source reads some families.
type Source func(ctx context.Context) ([]Family, error)

// One is a family with a single value.
func One(name, help string, kind Kind, value float64, labels ...string) Family {
	return Family{name, help, kind, []Value{{labels, value}}}
}

// Handler answers with everything that the sources tell. If one cannot tell,
// the whole answer is an error: a gap would look like zero.
func Handler(sources ...Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		var b strings.Builder
		for _, source := range sources {
			families, err := source(ctx)
			if err != nil {
				http.Error(w, "read metrics: "+err.Error(), http.StatusInternalServerError)
				return
			}
			for _, f := range families {
				f.write(&b)
			}
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(b.String()))
	})
}

var (
	helpText  = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	labelText = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

func (f Family) write(b *strings.Builder) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpText.Replace(f.Help), f.Name, f.Kind)
	for _, v := range f.Values {
		b.WriteString(f.Name)
		for i := 0; i+1 < len(v.Labels); i += 2 {
			b.WriteByte("{,"[min(i, 1)])
			fmt.Fprintf(b, `%s="%s"`, v.Labels[i], labelText.Replace(v.Labels[i+1]))
		}
		if len(v.Labels) > 0 {
			b.WriteByte('}')
		}
		b.WriteString(" " + strconv.FormatFloat(v.Value, 'g', -1, 64) + "\n")
	}
}
