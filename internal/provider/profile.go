package provider

import thole "github.com/tholehq/thole"

// Profiles is the one table that maps the neutral profiles to each provider's
// own modes. A driver reads its rows; users read them in `thole provider list`.
// Native values are the words of the CLI itself:
//
//	codex     approval policy "/" sandbox
//	claude    permission mode
//	opencode  agent, with the permission rule that goes with it
//	test      the neutral names
//
// In every row of plan the host denies what the CLI would let through.
func Profiles(providerName string) []ProfileMap {
	rows := func(plan, ask, edit, full string) []ProfileMap {
		return []ProfileMap{
			{thole.ProfilePlan, plan}, {thole.ProfileAsk, ask},
			{thole.ProfileEdit, edit}, {thole.ProfileFull, full},
		}
	}
	switch providerName {
	case "codex":
		return rows("never/read-only", "untrusted/workspace-write", "on-request/workspace-write", "never/danger-full-access")
	case "claude":
		return rows("plan", "default", "acceptEdits", "bypassPermissions")
	case "opencode":
		return rows("plan", "build/ask", "build/edit", "build/allow")
	case "test":
		return rows("plan", "ask", "edit", "full")
	}
	return nil
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
