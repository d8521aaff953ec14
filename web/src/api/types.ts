// The nouns of the HTTP API. Their shapes are made from its OpenAPI document
// (make gen); here are the page's names for them, and the parts of the chat.
import type { UIMessage } from "ai";
import type { components } from "./openapi";

type Schemas = components["schemas"];

export type Account = Schemas["Account"];
export type BrowserLogin = Schemas["SessionLogin"];
export type BrowserLogins = Schemas["ListLogin"];
export type Usage = Schemas["Usage"];
export type SessionStatus = Schemas["Status"];
export type Session = Schemas["Session"];
export type Sessions = Schemas["ListSession"];
export type Run = Schemas["Run"];
export type Runs = Schemas["ListRun"];
export type RunTime = Schemas["RunTime"];
export type Phase = Run["phase"];
export type RunError = Schemas["RunError"];
export type Input = Schemas["Input"];
export type Todo = Schemas["Todo"];
export type TodoState = Todo["state"];
export type TodoEvent = Schemas["TodoEvent"];
export type TodoEvents = Schemas["ListTodoEvent"];
export type FileChange = Schemas["FileChange"];
export type AskItem = Schemas["AskQuestion"];
export type Question = Schemas["Question"];
export type Questions = Schemas["ListQuestion"];
export type Reply = Schemas["Answer"];
export type Decision = NonNullable<Reply["decision"]>;
export type QueuedMessage = Schemas["QueuedMessage"];
export type Snapshot = Schemas["SnapshotOut"];
export type Provider = Schemas["ProviderInfo"];
export type Providers = Schemas["ProvidersOut"];
export type Files = Schemas["Files"];
export type SourceChoice = Schemas["SourceChoice"];
export type Folders = Schemas["Folders"];
export type Repository = Schemas["Repository"];
export type OfferedSources = Schemas["OfferedSources"];
export type Upload = Schemas["Upload"];
export type Changes = Schemas["Changes"];
export type ChangedFile = Schemas["ChangedFile"];
export type Applied = Schemas["Applied"];
export type Merged = Schemas["Merged"];
export type Pulled = Schemas["Pulled"];
export type Pushed = Schemas["Pushed"];
export type PullRequest = Schemas["PullRequest"];
export type Undone = Schemas["Undone"];
export type Job = Schemas["WireJob"];
export type Jobs = Schemas["ListJob"];
export type Batch = Schemas["WireBatch"];
export type Batches = Schemas["ListBatch"];
export type Network = Schemas["NetworkOut"];
export type Traffic = Schemas["EventTraffic"];
export type Port = Schemas["PreviewPort"];
export type Ports = Schemas["ListPort"];
export type Ticket = Schemas["TicketOut"];
export type UsageSums = Schemas["SpendUsage"];
export type UsageGroup = Schemas["SpendSum"];
export type Budget = Schemas["SpendBudget"];
export type Budgets = Schemas["ListBudget"];
export type Connection = Schemas["Connection"];
export type Connections = Schemas["ListConnection"];
export type SecretItem = Schemas["VaultDescription"];
export type SecretItems = Schemas["VaultListed"];
export type SecretTested = Schemas["VaultTested"];
export type EventData = Schemas["EventData"];
export type ServerEvent = Schemas["Event"];
export type MessageMetadata = Schemas["ChatMetadata"];

// What data-* parts of the chat stream carry.
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
/** A page of a chat: the document leaves the parts open, the library's type says what they are. */
export type ChatMessages = Omit<Schemas["ListMessage"], "items"> & { items: ChatMessage[] };
export type ChatPart = ChatMessage["parts"][number];
