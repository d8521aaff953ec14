package app

// Direction says who sends a message.
type Direction string

const (
	FromClient   Direction = "request"       // client to server, answered
	FromServer   Direction = "serverRequest" // server to client, answered
	Notification Direction = "notification"  // server to client
)

// Method describes one message of the contract. Params and Result are zero values
// of their types, nil where there are none.
type Method struct {
	Name      string
	Direction Direction
	Params    any
	Result    any
	// Experimental messages go only to and from connections with experimentalApi,
	// Extension ones only where the extension was declared.
	Experimental bool
	Extension    bool
	// Optional params may be absent.
	Optional bool
}

// Methods is the whole contract.
func Methods() []Method {
	req := func(name string, p, r any) Method {
		return Method{Name: name, Direction: FromClient, Params: p, Result: r}
	}
	opt := func(m Method) Method { m.Optional = true; return m }
	exp := func(m Method) Method { m.Experimental = true; return m }
	ext := func(m Method) Method { m.Extension = true; return m }
	ask := func(name string, p, r any) Method {
		return Method{Name: name, Direction: FromServer, Params: p, Result: r}
	}
	note := func(name string, p any) Method { return Method{Name: name, Direction: Notification, Params: p} }
	return []Method{
		req("initialize", InitializeParams{}, InitializeResult{}),
		req("thread/start", ThreadStartParams{}, ThreadView{}),
		req("thread/resume", ThreadResumeParams{}, ThreadResumeResult{}),
		req("thread/fork", ThreadForkParams{}, ThreadView{}),
		req("thread/read", ThreadReadParams{}, ThreadResult{}),
		req("thread/list", ThreadListParams{}, ThreadListResult{}),
		req("thread/search", ThreadListParams{}, ThreadSearchResult{}),
		req("thread/loaded/list", Empty{}, LoadedListResult{}),
		req("thread/turns/list", TurnsListParams{}, TurnsPage{}),
		req("thread/items/list", ItemsListParams{}, ItemsPage{}),
		req("thread/archive", ThreadParams{}, Empty{}),
		req("thread/unarchive", ThreadParams{}, ThreadResult{}),
		req("thread/delete", ThreadParams{}, Empty{}),
		req("thread/name/set", ThreadNameParams{}, Empty{}),
		req("thread/unsubscribe", ThreadParams{}, UnsubscribeResult{}),
		exp(req("thread/settings/update", SettingsUpdateParams{}, Empty{})),
		req("thread/goal/get", ThreadParams{}, nil),
		req("thread/goal/set", ThreadParams{}, nil),
		req("thread/goal/clear", ThreadParams{}, nil),
		req("thread/inject_items", InjectItemsParams{}, Empty{}),
		exp(req("thread/backgroundTerminals/clean", ThreadParams{}, Empty{})),
		req("command/exec", Empty{}, nil),
		exp(req("thread/queue/add", QueueAddParams{}, QueueResult{})),
		exp(req("thread/queue/list", ThreadParams{}, QueueListResult{})),
		exp(req("thread/queue/update", QueueUpdateParams{}, QueueResult{})),
		exp(req("thread/queue/delete", QueueParams{}, DeletedResult{})),
		exp(req("thread/queue/reorder", QueueReorderParams{}, QueueListResult{})),
		exp(req("thread/queue/start", QueueParams{}, TurnResult{})),
		req("thread/compact/start", ThreadParams{}, Empty{}),
		req("thread/shellCommand", ShellCommandParams{}, Empty{}),
		req("review/start", ReviewStartParams{}, ReviewStartResult{}),
		req("turn/start", TurnStartParams{}, TurnResult{}),
		req("turn/steer", TurnSteerParams{}, TurnSteerResult{}),
		req("turn/interrupt", TurnInterruptParams{}, Empty{}),
		req("model/list", ModelListParams{}, ModelListResult{}),
		req("permissionProfile/list", Empty{}, ProfileListResult{}),
		req("collaborationMode/list", Empty{}, CollaborationModeList{}),
		req("config/read", ConfigReadParams{}, ConfigReadResult{}),
		req("config/value/write", ConfigEdit{}, ConfigWriteResult{}),
		req("config/batchWrite", ConfigBatchWriteParams{}, ConfigWriteResult{}),
		opt(req("configRequirements/read", nil, nil)),
		req("account/read", Empty{}, nil),
		opt(req("account/rateLimits/read", nil, nil)),
		req("account/bedrock/checkGovCloudRequirements", Empty{}, nil),
		req("getAuthStatus", Empty{}, nil),
		req("modelProvider/capabilities/read", Empty{}, nil),
		req("experimentalFeature/list", Empty{}, nil),
		req("mcpServerStatus/list", Empty{}, nil),
		req("skills/list", CwdsParams{}, nil),
		req("hooks/list", CwdsParams{}, nil),
		req("plugin/list", CwdsParams{}, nil),

		ext(req("thole/thread/attach", AttachParams{}, AttachResult{})),
		ext(req("thole/thread/todos", ThreadParams{}, TodoListResult{})),
		ext(req("thole/thread/setup", ThreadParams{}, SetupResult{})),
		ext(req("thole/turn/startIfIdle", TurnStartParams{}, TurnResult{})),
		ext(req("thole/queue/promote", QueueParams{}, TurnResult{})),
		ext(req("thole/ask/list", AskListParams{}, AskListResult{})),
		ext(req("thole/ask/answer", AskAnswerParams{}, AskResult{})),
		ext(opt(req("thole/provider/list", nil, ProviderListResult{}))),

		ask("item/commandExecution/requestApproval", CommandApproval{}, ApprovalAnswer{}),
		ask("item/fileChange/requestApproval", FileApproval{}, ApprovalAnswer{}),
		ask("item/permissions/requestApproval", PermissionsApproval{}, PermissionsAnswer{}),
		ask("item/tool/requestUserInput", UserInputRequest{}, UserInputAnswer{}),
		ask("mcpServer/elicitation/request", Elicitation{}, ElicitationAnswer{}),
		ask("item/tool/call", ToolCall{}, ToolCallAnswer{}),
		ext(ask("thole/auth/refresh", AuthRefresh{}, Answer{})),

		note("thread/started", ThreadStarted{}),
		note("thread/status/changed", StatusChanged{}),
		note("thread/archived", ThreadRef{}),
		note("thread/unarchived", ThreadRef{}),
		note("thread/deleted", ThreadRef{}),
		note("thread/closed", ThreadRef{}),
		note("thread/name/updated", NameUpdated{}),
		note("thread/settings/updated", SettingsUpdated{}),
		note("thread/tokenUsage/updated", UsageUpdated{}),
		exp(note("thread/queue/changed", ThreadRef{})),
		note("turn/started", TurnNotification{}),
		note("turn/completed", TurnNotification{}),
		note("turn/plan/updated", PlanUpdated{}),
		note("turn/diff/updated", DiffUpdated{}),
		note("item/started", ItemStarted{}),
		note("item/completed", ItemDone{}),
		note("item/agentMessage/delta", Delta{}),
		note("item/plan/delta", Delta{}),
		note("item/reasoning/textDelta", Delta{}),
		note("item/reasoning/summaryTextDelta", Delta{}),
		note("item/reasoning/summaryPartAdded", SummaryPart{}),
		note("item/commandExecution/outputDelta", Delta{}),
		note("serverRequest/resolved", Resolved{}),
		note("error", ErrorNotification{}),
		note("warning", Warning{}),
		note("account/rateLimits/updated", RateLimitsUpdated{}),
		ext(note("thole/item/inputDelta", InputDelta{})),
		ext(note("thole/item/updated", ItemUpdated{})),
		ext(note("thole/turn/phase", TurnPhase{})),
		ext(note("thole/step/reset", StepReset{})),
	}
}
