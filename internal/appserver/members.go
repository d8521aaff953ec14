package appserver

import (
	"encoding/json"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// A member of a request that changes what it means is honoured or refused, never
// dropped. Members that processors read are fields of the params type. The table here
// has every other member that Codex knows: what it would change and what becomes of it.
// Members that Codex does not know either are ignored, as it does.

// rule is the fate of one member that no processor reads.
type rule struct {
	// Refuse: a value that asks for something is an error; otherwise the member is
	// ignored because it changes nothing here. Why says why, for users.
	Refuse bool
	Why    string
	// Same are values, as JSON, that ask for what is done anyway.
	Same []string
}

func harmless(why string) rule                { return rule{Why: why} }
func refused(why string, same ...string) rule { return rule{Refuse: true, Why: why, Same: same} }

// allows reports whether a value can be passed over.
func (r rule) allows(v json.RawMessage) bool {
	text := strings.TrimSpace(string(v))
	switch text {
	case "null", "false", `""`, "[]", "{}":
		return true
	}
	return !r.Refuse || slices.Contains(r.Same, text)
}

// Words that several methods share.
var (
	noEnvironments = refused("a thread runs in its own executor; it has no other environments")
	noPlugins      = refused("thole has no plugins of Codex")
	noProjects     = refused("thole has no projects; a thread's directory says where it belongs")
	noTree         = refused("threads are not listed by the thread that began them")
	noForkOf       = refused("a thread is named by its id, not by a file or a history")
	noPrediction   = refused("thole predicts no messages")
	labelsCalls    = harmless("it labels model calls of Codex's own service")
	styleIsGone    = harmless("Codex ignores it too")
)

// unread are the members of a method that is refused whatever they say.
func unread(names ...string) map[string]rule {
	all := map[string]rule{}
	for _, name := range names {
		all[name] = harmless("the method is refused")
	}
	return all
}

// Rules is the fate of every member of Codex's requests that no processor reads, by
// method and member.
func Rules() map[string]map[string]rule {
	overrides := map[string]rule{
		"personality":    styleIsGone,
		"multiAgentMode": styleIsGone,
	}
	with := func(more map[string]rule) map[string]rule {
		for name, r := range overrides {
			more[name] = r
		}
		return more
	}
	return map[string]map[string]rule{
		"thread/start": with(map[string]rule{
			"allowProviderModelFallback": harmless("a thread never changes its provider by itself"),
			"daybreakEnabled":            refused("it is a feature of Codex's own service"),
			"environments":               noEnvironments,
			"experimentalRawEvents":      refused("events of the model's service are not passed on"),
			"historyMode":                harmless("every thread can be read in pages and as a whole"),
			"mockExperimentalField":      harmless("Codex has it for its tests"),
			"projectId":                  noProjects,
			"selectedCapabilityRoots":    refused("an agent has the skills of its user and of its workspace"),
			"serviceName":                harmless("it names the client in Codex's statistics"),
			"sessionStartSource":         harmless("it is for hooks of Codex, which learn from it how a session began"),
		}),
		"thread/resume": {
			"history":     noForkOf,
			"path":        noForkOf,
			"personality": styleIsGone,
		},
		"thread/fork": {
			"attachToSource":                   refused("a fork stands for itself; it is listed like every thread"),
			"deferGoalContinuation":            harmless("a fork begins without a goal"),
			"experimentalDisablePredictionMcp": noPrediction,
			"experimentalPredictionMode":       noPrediction,
			"path":                             noForkOf,
		},
		"thread/settings/update": with(map[string]rule{"disabledPluginIds": noPlugins}),
		"thread/list": {
			"ancestorThreadId":   noTree,
			"attachedToThreadId": noTree,
			"originators":        refused("threads are not listed by the program that made them; Codex refuses it too"),
			"parentThreadId":     noTree,
			"projectId":          noProjects,
			"useStateDbOnly":     harmless("threads are always listed from the store"),
		},
		"thread/goal/clear": {"origin": harmless("a goal is cleared by the user of the connection")},
		"thread/shellCommand": {
			"timeoutMs": refused("a shell command runs until it ends or the turn is interrupted"),
		},
		"turn/start": with(map[string]rule{
			"additionalContext":               refused("say it in the input"),
			"cyberAccessProgram":              refused("it is a programme of Codex's own service"),
			"disabledPluginIds":               noPlugins,
			"environments":                    noEnvironments,
			"parentTurnId":                    refused("turns have no parents; a thread's turns follow one another"),
			"responsesapiClientMetadata":      labelsCalls,
			"responsesapiClientMetadataPatch": labelsCalls,
			"rootTurnId":                      refused("turns have no parents; a thread's turns follow one another"),
			"serviceTierForTurn":              refused("a tier of service belongs to the thread: send serviceTier"),
			"turnTrigger":                     harmless("who began a turn is recorded by the connection"),
		}),
		"turn/steer": {
			"additionalContext":               refused("say it in the input"),
			"responsesapiClientMetadata":      labelsCalls,
			"responsesapiClientMetadataPatch": labelsCalls,
		},
		"config/batchWrite":        {"reloadUserConfig": harmless("settings count from the next thread on, without a reload")},
		"account/read":             {"refreshToken": harmless("a login is renewed by its agent when it is used")},
		"experimentalFeature/list": {"cursor": harmless("the list is empty"), "limit": harmless("the list is empty"), "threadId": harmless("the list is empty")},
		"account/rateLimits/read":  unread("excludeResetCreditDetails", "supportsLunaReserve"),
		"account/usage/read":       unread("threadId"),
		"mcpServer/resource/read": {
			"connectorId":  refused("thole has no connectors of Codex"),
			"originCallId": harmless("it says for which call of Codex's own apps a resource is read"),
			"target":       refused("a server is named by its thread"),
		},
		"mcpServer/oauth/login":  unread("clientRegistration", "name", "scopes", "threadId", "timeoutSecs"),
		"plugin/list":            {"forceRefetch": harmless("the list is empty"), "marketplaceKinds": harmless("the list is empty")},
		"permissionProfile/list": {"cwd": harmless("every directory has the same profiles")},
	}
}

// judge refuses the first member that asks for what nobody here honours.
func (m *method) judge(members map[string]json.RawMessage) error {
	if len(m.rules) == 0 {
		return nil
	}
	var worst string
	for name, v := range members {
		if r, ok := m.rules[name]; ok && !r.allows(v) && (worst == "" || name < worst) {
			worst = name
		}
	}
	if worst == "" {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "%s.%s is not supported: %s", m.name, worst, m.rules[worst].Why).
		WithHint("leave %s out", worst)
}

// membersOf are the members of params; none if they are no object.
func membersOf(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	_ = strictjson.Unmarshal(raw, &members)
	return members
}
