package arch

import (
	"strings"
	"testing"
)

// Libraries with a home: everybody else speaks through the package that has it.
var libraries = map[string]string{
	"github.com/minio/minio-go/":             "internal/objects/s3",
	"github.com/prometheus/client_golang/":   "internal/metrics",
	"go.opentelemetry.io/otel":               "internal/tracing",
	"go.opentelemetry.io/proto/otlp/":        "internal/tracing",
	"google.golang.org/grpc":                 "nowhere",
	"github.com/cenkalti/backoff/":           "nowhere",
	"github.com/grpc-ecosystem/grpc-gateway": "nowhere",
}

func TestLibrariesHaveOneHome(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, to := range p.imports {
			for library, home := range libraries {
				if !strings.HasPrefix(to, library) || forTests(p.name) {
					continue
				}
				used[library] = true
				if p.name != home {
					t.Errorf("%s must not import %s: only %s does", show(p.name), to, home)
				}
			}
		}
	}
	for _, library := range []string{"github.com/minio/minio-go/", "github.com/prometheus/client_golang/", "go.opentelemetry.io/otel"} {
		if !used[library] {
			t.Errorf("nobody imports %s any more", library)
		}
	}
}
