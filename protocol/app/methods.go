package app

import "slices"

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
	return slices.Concat(threadMethods(), workMethods(), workspaceMethods(), inventoryMethods())
}

func req(name string, p, r any) Method {
	return Method{Name: name, Direction: FromClient, Params: p, Result: r}
}

func ask(name string, p, r any) Method {
	return Method{Name: name, Direction: FromServer, Params: p, Result: r}
}

func note(name string, p any) Method { return Method{Name: name, Direction: Notification, Params: p} }

func opt(m Method) Method { m.Optional = true; return m }
func exp(m Method) Method { m.Experimental = true; return m }
func ext(m Method) Method { m.Extension = true; return m }

// threadMethods are threads, their turns and items, and what clients are asked.
func threadMethods() []Method {
	return []Method{
		req("initialize", InitializeParams{}, InitializeResult{}),
		req("thread/start", ThreadStartParams{}, ThreadView{}),
		req("thread/resume", ThreadResumeParams{}, ThreadResumeResult{}),
		req("thread/fork", ThreadForkParams{}, ThreadView{}),
		req("thread/read", ThreadReadParams{}, ThreadReadResult{}),
		req("thread/list", ThreadListParams{}, ThreadListResult{}),
		req("thread/search", ThreadListParams{}, ThreadSearchResult{}),
		req("thread/loaded/list", ListParams{}, LoadedListResult{}),
		req("thread/turns/list", TurnsListParams{}, TurnsPage{}),
		req("thread/items/list", ItemsListParams{}, ItemsPage{}),
		req("thread/archive", ThreadParams{}, Empty{}),
		req("thread/unarchive", ThreadParams{}, ThreadResult{}),
		req("thread/delete", ThreadParams{}, Empty{}),
		req("thread/name/set", ThreadNameParams{}, Empty{}),
		req("thread/unsubscribe", ThreadParams{}, UnsubscribeResult{}),
		exp(req("thread/settings/update", SettingsUpdateParams{}, Empty{})),
		req("thread/inject_items", InjectItemsParams{}, Empty{}),
		exp(req("thread/queue/add", QueueAddParams{}, QueueResult{})),
		exp(req("thread/queue/list", QueueListParams{}, QueueListResult{})),
		exp(req("thread/queue/update", QueueUpdateParams{}, QueueResult{})),
		exp(req("thread/queue/delete", QueueParams{}, DeletedResult{})),
		exp(req("thread/queue/reorder", QueueReorderParams{}, Empty{})),
		exp(req("thread/queue/start", QueueParams{}, TurnResult{})),
		req("thread/compact/start", ThreadParams{}, Empty{}),
		req("thread/shellCommand", ShellCommandParams{}, Empty{}),
		req("turn/start", TurnStartParams{}, TurnResult{}),
		req("turn/steer", TurnSteerParams{}, TurnSteerResult{}),
		req("turn/interrupt", TurnInterruptParams{}, Empty{}),
		req("model/list", ModelListParams{}, ModelListResult{}),
		req("permissionProfile/list", ListParams{}, ProfileListResult{}),
		req("collaborationMode/list", Empty{}, CollaborationModeList{}),

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
		note("thread/goal/updated", GoalUpdated{}),
		note("thread/reverted", ThreadRef{}),
		note("thread/goal/cleared", ThreadRef{}),
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
		note("item/fileChange/patchUpdated", PatchUpdated{}),
		note("item/mcpToolCall/progress", ToolProgress{}),
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
