package provider

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// Profiles maps the neutral profiles to a provider's own modes. A driver reads its
// rows; users read them in `thole provider list`.
func Profiles(providerName string) (out []ProfileMap) {
	row := table.Of(providerName)
	for i, native := range row.Modes {
		if row.Name != "" {
			out = append(out, ProfileMap{table.Profiles[i], native})
		}
	}
	return out
}

// Modes are the modes that a provider has besides those of its profiles.
func Modes(providerName string) []table.Mode {
	return append([]table.Mode{}, table.Of(providerName).Native...)
}

// Native is the CLI's own mode for a profile. A profile that is not neutral is a
// native value and passes through unchanged; an empty one is ask.
func Native(providerName string, p thole.Profile) string {
	if p == "" {
		p = thole.ProfileAsk
	}
	for _, row := range Profiles(providerName) {
		if row.Profile == p {
			return row.Native
		}
	}
	return string(p)
}

// Neutral is the neutral profile of a value that may be native, "" when no row
// has it.
func Neutral(providerName string, p thole.Profile) thole.Profile {
	native := Native(providerName, p)
	for _, row := range Profiles(providerName) {
		if row.Native == native {
			return row.Profile
		}
	}
	return ""
}
