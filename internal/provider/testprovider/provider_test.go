package testprovider_test

import (
	"testing"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		New:     func(testing.TB) provider.Provider { return testprovider.New() },
		NoModel: true, SaysJSON: true,
	})
}
