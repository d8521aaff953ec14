package ownconfig

import "slices"

// laidIn is where files lie that settings of a CLI name.
var laidIn = map[string]string{"codex": "thole", "claude": "claude/thole", "opencode": "~/.opencode/thole"}

// codexKeys are those of config.toml, as codex 0.166 knows them.
var codexKeys = []Key{
	pass("model review_model model_context_window model_auto_compact_token_limit model_auto_compact_token_limit_scope model_post_turn_compact_threshold_percent model_reasoning_effort plan_mode_reasoning_effort " +
		"model_reasoning_summary model_verbosity model_supports_reasoning_summaries personality service_tier instructions developer_instructions compact_prompt " +
		"include_apps_instructions include_collaboration_mode_instructions include_environment_context include_permissions_instructions " +
		"project_doc_max_bytes project_doc_fallback_filenames project_root_markers tool_output_token_limit background_terminal_max_timeout hide_agent_reasoning show_raw_agent_reasoning " +
		"web_search tools.web_search tools.view_image profile allow_login_shell goals memories mcp_optional_startup_grace_ms " +
		"skills.bundled skills.include_instructions skills.max_context_tokens"),
	pass("agents.enabled agents.interrupt_message agents.max_depth agents.max_threads agents.max_concurrent_threads_per_session agents.default_subagent_model agents.default_subagent_reasoning_effort agents.job_max_runtime_seconds agents.*.description agents.*.nickname_candidates"),
	pass("features.apply_patch_freeform features.child_agents_md features.code_mode features.code_mode_only features.collab features.collaboration_modes features.current_time_reminder features.fast_mode features.goals " +
		"features.image_detail_original features.image_generation features.memories features.memory_tool features.multi_agent features.multi_agent_v2 features.non_prefixed_mcp_tool_names features.personality features.search_tool features.skill_search " +
		"features.steer features.tool_call_mcp_elicitation features.tool_search features.token_budget features.undo features.unified_exec features.view_image features.web_search features.web_search_cached features.web_search_request"),
	become(AsFile, "model_instructions_file experimental_instructions_file experimental_compact_prompt_file model_catalog_json"),
	become(LikeTop, "profiles.*"),
	become(Plain, "shell_environment_policy.set"),
	pass("shell_environment_policy.inherit shell_environment_policy.exclude shell_environment_policy.include_only shell_environment_policy.ignore_default_excludes"),
	become(ToGateway, "model_provider model_providers.*.name model_providers.*.base_url model_providers.*.env_key model_providers.*.env_key_instructions model_providers.*.experimental_bearer_token model_providers.*.http_headers model_providers.*.env_http_headers "+
		"model_providers.*.query_params model_providers.*.requires_openai_auth model_providers.*.wire_api openai_base_url oss_provider"),
	refuse("the gateway has its own", "model_providers.*.request_max_retries model_providers.*.stream_max_retries model_providers.*.stream_idle_timeout_ms model_providers.*.websocket_connect_timeout_ms model_providers.*.supports_websockets "+
		"model_providers.*.supports_standalone_web_search model_providers.*.model_catalog_url"),
	refuse("a program that prints keys, or a sign-in of a cloud, cannot go through the gateway", "model_providers.*.auth model_providers.*.aws model_providers.*.gateway_oauth model_providers.*.project_id model_providers.*.credential_file model_providers.*.capabilities chatgpt_base_url"),
	become(Program, "mcp_servers.*.command"),
	become(Words, "mcp_servers.*.args"),
	become(Values, "mcp_servers.*.env mcp_servers.*.http_headers"),
	become(Address, "mcp_servers.*.url"),
	become(Variables, "mcp_servers.*.env_vars"),
	become(HeaderVars, "mcp_servers.*.env_http_headers"),
	become(BearerVar, "mcp_servers.*.bearer_token_env_var"),
	pass("mcp_servers.*.name mcp_servers.*.enabled mcp_servers.*.required mcp_servers.*.startup_timeout_sec mcp_servers.*.startup_timeout_ms mcp_servers.*.startup_readiness mcp_servers.*.tool_timeout_sec mcp_servers.*.enabled_tools " +
		"mcp_servers.*.disabled_tools mcp_servers.*.omit_tools_from mcp_servers.*.supports_parallel_tool_calls mcp_servers.*.tool_input_schema_max_bytes mcp_servers.*.default_tools_approval_mode mcp_servers.*.tools"),
	refuse("a sign-in of the server needs your browser and your keyring: use a token and `providers.mcp_secrets`", "mcp_servers.*.auth mcp_servers.*.oauth mcp_servers.*.oauth_resource mcp_servers.*.scopes mcp_servers.*.idp_oauth mcp_servers.*.bearer_token "+
		"mcp_enterprise_managed_auth mcp_oauth_credentials_store mcp_oauth_callback_port mcp_oauth_callback_url"),
	refuse("runs a program for each call", "mcp_servers.*.http_headers_helper"),
	refuse("the server runs where the agent works", "mcp_servers.*.cwd mcp_servers.*.environment_id"),
	become(ByConsent, "hooks"),
	refuse(whyConsent+", which turns it on", "features.hooks features.codex_hooks features.plugin_hooks"),
	refuse(whyProfile, "approval_policy approvals_reviewer sandbox_mode sandbox_workspace_write default_permissions permissions projects auto_review features.guardian_approval features.guardianv2 features.guardianv3 features.exec_permission_approvals "+
		"features.request_permissions features.request_permissions_tool features.request_rule features.default_mode_request_user_input"),
	refuse(whyBox, "features.use_legacy_landlock features.use_linux_sandbox_bwrap features.network_proxy features.shell_snapshot features.shell_snapshot_v2 features.respect_system_proxy sqlite_home log_dir allow_symlinked_codex_home"),
	refuse("the role's own file in `agents/` counts", "agents.*.config_file"),
	refuse(whyPlugins, "plugins marketplaces apps orchestrator tool_suggest features.plugins features.remote_plugin features.apps features.connectors features.plugin_sharing features.recommended_plugins features.skill_mcp_dependency_install skills.config apps_mcp_product_sku"),
	refuse(whyLogin, "cli_auth_credentials_store forced_login_method forced_chatgpt_workspace_id features.secret_auth_storage"),
	refuse("runs a program of this machine", "notify js_repl_node_path js_repl_node_module_dirs features.js_repl"),
	refuse("sends what agents do elsewhere", "otel analytics feedback features.remote_control cloud responses_api_metadata"),
	refuse(whyScreen, "tui notice history file_opener disable_paste_burst audio realtime desktop browser_use computer_use windows check_for_update_on_startup suppress_unstable_features_warning ghost_snapshot"),
	refuse("experimental, for the CLI's developers", "experimental_thread_store experimental_thread_store_endpoint experimental_use_unified_exec_tool experimental_realtime_start_instructions experimental_realtime_webrtc_call_base_url experimental_realtime_ws_backend_prompt "+
		"experimental_realtime_ws_base_url experimental_realtime_ws_model experimental_realtime_ws_startup_context thread_unload_delay_secs"),
}

// skillKeys are those of the front matter of skills and commands.
var skillKeys = []Key{
	pass("name description license metadata version compatibility allowed-tools disallowed-tools argument-hint arguments model effort disable-model-invocation user-invocable when_to_use context agent subtask paths tags author"),
	become(ByConsent, "hooks shell"),
}

var codexTable = Table{CLI: "codex", Files: []File{
	{From: "config.toml", To: "config.toml", Keys: codexKeys},
	{From: "AGENTS.override.md", To: "AGENTS.md", Why: "in the place of AGENTS.md, as codex takes it"},
	{From: "AGENTS.md", To: "AGENTS.md"},
	{From: "prompts", To: "prompts", Dir: true, Ends: []string{".md"}, Front: skillKeys},
	{From: "skills", To: "skills", Dir: true, Front: skillKeys},
	{Root: Home, From: ".agents/skills", To: "~/.agents/skills", Dir: true, Front: skillKeys},
	{From: "rules", To: "rules", Dir: true, Ends: []string{".rules"}, Why: "commands that you allow or forbid everywhere"},
	{From: "agents", To: "agents", Dir: true, Ends: []string{".toml"}, Keys: append([]Key{pass("name description nickname_candidates")}, codexKeys...)},
	{From: "hooks.json", To: "hooks.json", Consent: true},
	{From: "hooks", To: "hooks", Dir: true, Consent: true},
	{From: "plugins", Fate: Refused, Why: whyPlugins},
	{From: ".env", Fate: Refused, Why: "variables of yours may be secrets"},
	{From: "environments.toml", Fate: Refused, Why: whyHost},
	{From: "auth.json", Fate: Refused, Why: whyLogin},
}, Tail: codexHooks}

// codexHooks turns hooks on where a person consented to them: codex has them off.
func codexHooks(r *reader) {
	if !slices.Contains(r.Hooks, r.cli) || r.Files["hooks.json"] == nil && (r.merged["config.toml"] == nil || r.merged["config.toml"].by["hooks"] == nil) {
		return
	}
	if r.merged["config.toml"] == nil {
		r.merged["config.toml"] = newObject()
	}
	r.merged["config.toml"].put([]string{"features", "hooks"}, true)
}
