package app

// inventoryMethods say what there is: models' accounts, settings, tools.
func inventoryMethods() []Method {
	return []Method{
		req("config/read", ConfigReadParams{}, ConfigReadResult{}),
		req("config/value/write", ConfigEdit{}, ConfigWriteResult{}),
		req("config/batchWrite", ConfigBatchWriteParams{}, ConfigWriteResult{}),
		opt(req("configRequirements/read", nil, nil)),
		req("account/read", Empty{}, nil),
		opt(req("account/rateLimits/read", nil, nil)),
		opt(req("account/usage/read", nil, nil)),
		opt(req("config/mcpServer/reload", nil, nil)),
		req("mcpServer/tool/call", McpServerToolCallParams{}, McpServerToolCallResult{}),
		req("mcpServer/resource/read", McpResourceReadParams{}, McpResourceReadResult{}),
		req("mcpServer/oauth/login", nil, nil),
		req("account/bedrock/checkGovCloudRequirements", Empty{}, nil),
		req("getAuthStatus", Empty{}, nil),
		req("modelProvider/capabilities/read", Empty{}, ModelProviderCapabilities{}),
		req("experimentalFeature/list", Empty{}, nil),
		req("mcpServerStatus/list", McpServerStatusListParams{}, McpServerStatusListResult{}),
		req("skills/list", SkillsListParams{}, SkillsListResult{}),
		req("hooks/list", HooksListParams{}, HooksListResult{}),
		req("plugin/list", CwdsParams{}, nil),
	}
}
