package opencode_test

import (
	"testing"

	"github.com/tholehq/thole/internal/provider/providertest"
)

func TestMain(m *testing.M) { providertest.Main(m) }
