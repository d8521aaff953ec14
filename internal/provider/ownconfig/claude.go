package ownconfig

// claudeKeys are those of settings.json, as Claude Code 2.1.325 knows them.
var claudeKeys = []Key{
	pass("$schema model fallbackModel availableModels enforceAvailableModels availableModelsMatch deniedModels modelOverrides modelSettings effortLevel maxEffortLevel ultracode alwaysThinkingEnabled outputStyle language agent advisorModel fastMode fastModePerSessionOptIn " +
		"autoCompactEnabled autoCompactWindow precomputeCompactionEnabled idleCompaction promptCacheTtl subagentPromptCacheTtl switchModelsOnFlag totalTokensReminder showThinkingSummaries includeCoAuthoredBy attribution includeGitInstructions " +
		"respectGitignore cleanupPeriodDays plansDirectory bashEditDiffEnabled bashOutputMaxChars taskOutputMaxChars defaultShell autoMemoryEnabled autoDreamEnabled todoFeatureEnabled claudeMdExcludes companyAnnouncements timeFormat timeZone " +
		"skillListingMaxDescChars skillListingBudgetFraction skillOverrides disableBundledSkills disableSkillShellExecution disableAllHooks disableAutoMode disableWorkflows enableWorkflows workflowSizeGuideline disableArtifact enableArtifact " +
		"disableRemoteControl disableClaudeAiConnectors syncClaudeAiSkills syncClaudeAiPlugins disabledMcpjsonServers deniedMcpServers allowedMcpServers"),
	pass("permissions.allow permissions.ask permissions.deny permissions.disableBypassPermissionsMode permissions.disableAutoMode"),
	refuse(whyProfile, "permissions.defaultMode skipDangerousModePermissionPrompt skipWorkflowUsageWarning"),
	refuse(whyBox, "permissions.additionalDirectories sandbox worktree autoMemoryDirectory skipWebFetchPreflight"),
	pass("env.MAX_THINKING_TOKENS env.MAX_MCP_OUTPUT_TOKENS env.MCP_TIMEOUT env.MCP_TOOL_TIMEOUT env.BASH_DEFAULT_TIMEOUT_MS env.BASH_MAX_TIMEOUT_MS env.BASH_MAX_OUTPUT_LENGTH env.CLAUDE_CODE_MAX_OUTPUT_TOKENS env.CLAUDE_CODE_EFFORT_LEVEL " +
		"env.CLAUDE_CODE_SUBAGENT_MODEL env.CLAUDE_CODE_DISABLE_THINKING env.CLAUDE_CODE_DISABLE_BACKGROUND_TASKS env.CLAUDE_CODE_DISABLE_1M_CONTEXT env.CLAUDE_CODE_DISABLE_AUTO_MEMORY env.CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS env.CLAUDE_AUTOCOMPACT_PCT_OVERRIDE " +
		"env.CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR env.CLAUDE_CODE_GLOB_HIDDEN env.CLAUDE_CODE_GLOB_NO_IGNORE env.CLAUDE_CODE_AUTO_COMPACT_WINDOW env.DISABLE_COMPACT env.DISABLE_AUTO_COMPACT env.DISABLE_PROMPT_CACHING env.DISABLE_INTERLEAVED_THINKING " +
		"env.ENABLE_TOOL_SEARCH env.SLASH_COMMAND_TOOL_CHAR_BUDGET env.API_TIMEOUT_MS env.TZ env.NO_COLOR"),
	become(ToGateway, "env.ANTHROPIC_BASE_URL env.ANTHROPIC_API_KEY env.ANTHROPIC_AUTH_TOKEN env.CLAUDE_CODE_OAUTH_TOKEN env.ANTHROPIC_CUSTOM_HEADERS env.ANTHROPIC_MODEL env.ANTHROPIC_SMALL_FAST_MODEL env.ANTHROPIC_DEFAULT_OPUS_MODEL env.ANTHROPIC_DEFAULT_SONNET_MODEL env.ANTHROPIC_DEFAULT_HAIKU_MODEL"),
	refuse("Bedrock, Vertex and Foundry sign calls themselves, which cannot go through the gateway", "env.CLAUDE_CODE_USE_BEDROCK env.CLAUDE_CODE_USE_VERTEX env.CLAUDE_CODE_USE_FOUNDRY env.ANTHROPIC_BEDROCK_BASE_URL env.ANTHROPIC_VERTEX_BASE_URL "+
		"env.ANTHROPIC_VERTEX_PROJECT_ID env.ANTHROPIC_FOUNDRY_BASE_URL env.ANTHROPIC_FOUNDRY_API_KEY env.AWS_BEARER_TOKEN_BEDROCK env.CLOUD_ML_REGION env.AWS_REGION env.AWS_PROFILE"),
	refuse("the box has a proxy and certificates of its own", "env.HTTP_PROXY env.HTTPS_PROXY env.NO_PROXY env.http_proxy env.https_proxy env.no_proxy env.NODE_EXTRA_CA_CERTS env.SSL_CERT_FILE env.CLAUDE_CODE_CLIENT_CERT env.CLAUDE_CODE_CLIENT_KEY"),
	refuse("not a variable that is known to do no harm", "env.*"),
	become(ByConsent, "hooks allowedHttpHookUrls httpHookAllowedEnvVars"),
	refuse("a project's servers count in profile full only", "enableAllProjectMcpServers enabledMcpjsonServers"),
	refuse("a program that prints keys cannot go through the gateway", "apiKeyHelper proxyAuthHelper awsCredentialExport awsAuthRefresh gcpAuthRefresh otelHeadersHelper"),
	refuse(whyLogin, "forceLoginMethod forceLoginOrgUUID forceLoginGatewayUrl gatewayInternalNetworks allowedProviders"),
	refuse("runs a program of this machine", "statusLine subagentStatusLine fileSuggestion processWrapper policyHelper policyHelpers sshConfigs sshHostCommands"),
	refuse(whyPlugins, "enabledPlugins pluginConfigs extraKnownMarketplaces additionalMarketplaces strictKnownMarketplaces allowedMarketplaces blockedMarketplaces pluginSuggestionMarketplaces prependPlugins appendPlugins pluginTrustMessage"),
	refuse("reaches other sessions and machines", "remote remoteControl remoteControlAtStartup remoteTools isolatePeerMachines crossSessionInbound autoUploadSessions daemonColdStart teammateMode channelsEnabled allowedChannelPlugins"),
	refuse(whyManaged, "attributionProject attributionProjectPolicy managedMcpServers allowManagedHooksOnly allowManagedPermissionRulesOnly allowManagedMcpServersOnly allowAllClaudeAiMcps allowClaudeInChromeWithManagedMcp strictPluginOnlyCustomization "+
		"disableCommandPluginSources disableSideloadFlags parentSettingsBehavior managedSourcesBehavior forceRemoteSettingsRefresh claudeMd wslInheritsWindowsSettings desktopSessionCleanupPeriodDays requiredMinimumVersion requiredMaximumVersion modelPricing"),
	refuse(whyScreen, "breakReminder quietHours modelPicker prUrlTemplate footerLinksRegexes viewMode feedbackSurveyRate feedbackDrafts spinnerTipsEnabled clawdFileProgressEnabled spinnerVerbs spinnerTipsOverride syntaxHighlightingDisabled maxProseWidth spellcheck "+
		"terminalTitleFromRename promptSuggestionEnabled emojiCompletionEnabled awaySummaryEnabled responseComparisonEnabled showClearContextOnPlanAccept askUserQuestionTimeout dialogExpiry modelProposedGoals autoUpdatesChannel minimumVersion tui voice "+
		"prefersReducedMotion doneMeansMerged totalTokensReminderBudget totalTokensReminderAfterUserTurn theme editorMode keybindingFlavor vimInsertModeRemaps verbose preferredNotifChannel precomputeArmTokens autoContinueAtUsageLimit autoScrollEnabled "+
		"wheelScrollAccelerationEnabled fileCheckpointingEnabled showTurnDuration showMessageTimestamps terminalProgressBarEnabled inputNeededNotifEnabled agentPushNotifEnabled disableReplyCheck disableAgentView workflowKeywordTriggerEnabled "+
		"disableWindowsBashCommandSplit respondToBashCommands"),
}

// claudeServers are the keys of .claude.json, which is the CLI's own memory besides.
var claudeServers = []Key{
	become(Program, "mcpServers.*.command"),
	become(Words, "mcpServers.*.args"),
	become(Values, "mcpServers.*.env mcpServers.*.headers"),
	become(Address, "mcpServers.*.url"),
	pass("mcpServers.*.type mcpServers.*.timeout mcpServers.*.alwaysLoad"),
	refuse("runs a program for each call", "mcpServers.*.headersHelper"),
	refuse("a sign-in of the server needs your browser: use a token and `providers.mcp_secrets`", "mcpServers.*.oauth"),
	refuse("what claude remembers of this machine", "*"),
}

var claudeAgentKeys = []Key{
	pass("name description tools disallowedTools model color effort skills memory maxTurns background isolation initialPrompt"),
	become(ByConsent, "hooks"),
	refuse("name the server in `~/.claude.json`", "mcpServers"),
	refuse(whyProfile, "permissionMode"),
}

var claudeTable = Table{CLI: "claude", Files: []File{
	{From: "settings.json", To: "claude/settings.json", Keys: claudeKeys},
	{Root: HomeOrDir, From: ".claude.json", To: "claude/mcp.json", Keys: claudeServers},
	{From: "CLAUDE.md", To: "claude/CLAUDE.md", Imports: true, Why: "with the files that it imports"},
	{From: "rules", To: "claude/rules", Dir: true, Ends: []string{".md"}},
	{From: "agents", To: "claude/agents", Dir: true, Ends: []string{".md"}, Front: claudeAgentKeys},
	{From: "commands", To: "claude/commands", Dir: true, Ends: []string{".md"}, Front: skillKeys},
	{From: "skills", To: "claude/skills", Dir: true, Front: skillKeys},
	{From: "output-styles", To: "claude/output-styles", Dir: true, Ends: []string{".md"}},
	{From: "hooks", To: "claude/hooks", Dir: true, Consent: true},
	{From: "plugins", Fate: Refused, Why: whyPlugins},
	{From: "workflows", Fate: Refused, Why: "programs of yours"},
	{From: "keybindings.json", Fate: Refused, Why: whyScreen},
	{From: ".credentials.json", Fate: Refused, Why: whyLogin},
}}
