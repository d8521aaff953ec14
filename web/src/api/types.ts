// The nouns of the HTTP API, as docs/protocol/http.md describes them.
import type { UIMessage } from "ai";

export interface Page<T> {
  items: T[];
  next?: string;
  back?: string;
}

export interface Usage {
  input: number;
  output: number;
  reasoning?: number;
  cache_read?: number;
  cache_write?: number;
  context_window?: number;
  cost_micros?: number;
  model?: string;
}

export interface SessionStatus {
  loaded: boolean;
  active: boolean;
  waiting_on_approval: boolean;
  waiting_on_input: boolean;
  system_error: boolean;
}

export interface Session {
  id: string;
  name: string;
  preview: string;
  provider: string;
  model?: string;
  effort?: string;
  execution_profile?: string;
  dir?: string;
  source?: string;
  archived: boolean;
  forked_from?: string;
  created_at: string;
  updated_at: string;
  seq: number;
  floor: number;
  runs: number;
  active_run_id?: string;
  status: SessionStatus;
  usage: Usage;
}

export type Phase =
  | "queued"
  | "claimed"
  | "restoring"
  | "linking"
  | "preparing"
  | "running"
  | "waiting_human"
  | "syncing"
  | "exported"
  | "succeeded"
  | "failed"
  | "canceled";

export interface RunError {
  code: string;
  message: string;
  hint?: string;
  status?: number;
  retrying?: boolean;
}

export interface Input {
  type: string;
  text?: string;
  url?: string;
}

export interface Run {
  id: string;
  session_id: string;
  number: number;
  seq: number;
  phase: Phase;
  outcome?: "completed" | "failed" | "interrupted";
  error?: RunError;
  input: Input[];
  client_id?: string;
  provider?: string;
  model?: string;
  execution_profile?: string;
  usage: Usage;
  executor_id?: string;
  trace_id?: string;
  created_at: string;
  started_at?: string;
  ended_at?: string;
  interrupt_requested?: boolean;
  waiting_on?: string;
}

export type TodoState = "todo" | "doing" | "done" | "canceled";

export interface Todo {
  id: string;
  content: string;
  state: TodoState;
  order: number;
}

export interface TodoEvent {
  id: string;
  seq: number;
  run_id: string;
  ts: string;
  type: "todo.snapshot" | "todo.update";
  todos: Todo[];
}

export interface FileChange {
  path: string;
  kind: "add" | "update" | "delete";
  move?: string;
  diff?: string;
}

export type Decision = "allow" | "always" | "deny" | "cancel";

export interface AskOption {
  label: string;
  description?: string;
}

export interface AskItem {
  id: string;
  header?: string;
  text: string;
  options?: AskOption[];
  multi?: boolean;
  free?: boolean;
  secret?: boolean;
}

export interface Reply {
  decision?: Decision;
  message?: string;
  answers?: Record<string, string[]>;
  input?: unknown;
  amendment?: unknown;
  result?: unknown;
}

export interface Question {
  question_id: string;
  session_id: string;
  run_id: string;
  kind: "command" | "file_change" | "permissions" | "plan" | "elicitation" | "tool" | "auth" | "input";
  state: "pending" | "answered" | "expired" | "canceled" | "self_answered";
  item_id?: string;
  title?: string;
  reason?: string;
  command?: string;
  dir?: string;
  changes?: FileChange[];
  questions?: AskItem[];
  tool?: { name: string; server?: string; input?: unknown };
  schema?: unknown;
  decisions?: Decision[];
  amendment?: unknown;
  deadline?: string;
  asked_at?: string;
  resolved_at?: string;
  answer?: Reply;
  answered_by?: string;
}

export interface QueuedMessage {
  id: string;
  session_id: string;
  input: Input[];
  client_id?: string;
  created_at: string;
}

export interface Snapshot {
  session: Session;
  seq: number;
  active_run?: Run;
  questions: Question[];
  todos: Todo[];
  queue: QueuedMessage[];
}

export type Capability = "validated" | "unknown" | "unavailable";

export interface Provider {
  name: string;
  title: string;
  binary?: string;
  version?: string;
  available: boolean;
  problem?: string;
  fix?: string;
  models?: { id: string; title?: string; efforts?: string[]; default?: boolean }[];
  profiles?: { profile: string; native?: string }[];
  capabilities?: Record<string, Capability> & { notes?: Record<string, string> | string[] | string };
}

export interface Providers {
  items: Provider[];
  default: string;
}

export interface Job {
  job_id: string;
  source_thread_id: string;
  parent_job_id?: string;
  target_kind: string;
  status: "running" | "ready" | "failed" | "cancelled";
  task_kind: string;
  task_summary: string;
  result_summary?: string;
  exit_code?: number;
  artifact_id?: string;
  waits_for_children?: boolean;
  batch_id?: string;
  created_at: string;
  ready_at?: string;
  completed_at?: string;
  children?: Job[];
}

export interface Attempt {
  attempt_id: string;
  generation: number;
  state: string;
  delivery_rpc_state?: string;
  delivery_accepted_at?: string;
  last_observed_turn_event?: string;
  created_at: string;
}

export interface LedgerRow {
  at: string;
  actor: string;
  via: string;
  event: string;
  job_id?: string;
  batch_id?: string;
  from?: string;
  to?: string;
  proof?: Record<string, string>;
}

export interface Batch {
  batch_id: string;
  source_thread_id: string;
  head: boolean;
  job_ids?: string[];
  state: string;
  summary: string;
  first_ready_at: string;
  delivery_attempt_count: number;
  max_delivery_attempts: number;
  redelivery_window_ends_at?: string;
  replay_policy: "automatic" | "manual_resolution_only";
  held_for?: string;
  closed_at?: string;
  close_reason?: string;
  delivery_mode: string;
  attempts?: Attempt[];
  jobs?: Job[];
  ledger?: LedgerRow[];
}

export interface EventData {
  name?: string;
  archived?: boolean;
  settings?: Partial<Pick<Session, "provider" | "model" | "effort" | "execution_profile" | "dir">>;
  status?: SessionStatus;
  input?: Input[];
  client_id?: string;
  phase?: Phase;
  outcome?: Run["outcome"];
  error?: RunError;
  last_error?: string;
  todos?: Todo[];
  question?: Question;
  question_id?: string;
  state?: Question["state"];
  answer?: Reply;
  answered_by?: string;
  usage?: Usage;
  text?: string;
  message?: QueuedMessage;
  message_id?: string;
  front?: boolean;
  order?: string[];
}

export interface ServerEvent {
  type: string;
  id?: string;
  seq?: number;
  session_id?: string;
  run_id?: string;
  executor_id?: string;
  trace_id?: string;
  ts: string;
  data: EventData;
}

export interface MessageMetadata {
  session_id?: string;
  run_id?: string;
  client_id?: string;
  trace_id?: string;
  executor_id?: string;
  provider?: string;
  model?: string;
  execution_profile?: string;
  created_at?: string;
  ended_at?: string;
  outcome?: Run["outcome"];
  usage?: Usage;
  seq?: number;
}

export type DataParts = {
  todo: { todos: Todo[]; changes: number };
  ask: Question;
  phase: { run_id: string; executor_id?: string; phase: Phase; error?: string; since?: string };
  usage: Usage;
  error: RunError;
  retry: RunError;
  steer: { text: string; content?: Input[]; client_id?: string };
  note: { kind: "compaction" | "system" | "note"; text: string };
};

export type ChatMessage = UIMessage<MessageMetadata, DataParts>;
export type ChatPart = ChatMessage["parts"][number];
