import { type DynamicToolUIPart, isDataUIPart, isToolUIPart, type SourceDocumentUIPart, type SourceUrlUIPart, type ToolUIPart } from "ai";
import type { ChatMessage, ChatPart, Question } from "../api/types";
import { keyOf } from "../state/merge";

export type SourcePart = SourceUrlUIPart | SourceDocumentUIPart;

/** Row is one line of the list. A run with thousands of items is thousands of rows, and only those in sight are drawn. */
export type Row =
  | { key: string; kind: "top"; more: boolean }
  | { key: string; kind: "user"; message: ChatMessage }
  | { key: string; kind: "step"; number: number }
  | { key: string; kind: "part"; message: ChatMessage; part: ChatPart; live: boolean; paired?: boolean }
  | { key: string; kind: "sources"; parts: SourcePart[] }
  | { key: string; kind: "foot"; message: ChatMessage }
  | { key: string; kind: "wait" };

interface State {
  more: boolean;
  busy: boolean;
}

export function rowsOf(messages: ChatMessage[], { more, busy }: State): Row[] {
  const rows: Row[] = messages.length ? [{ key: "top", kind: "top", more }] : [];
  messages.forEach((message, index) => {
    const last = index === messages.length - 1;
    if (message.role === "user") rows.push({ key: keyOf(message), kind: "user", message });
    else if (message.role === "assistant") answer(rows, message, last && busy);
  });
  if (busy && messages.length && !speaking(rows.at(-1))) rows.push({ key: "wait", kind: "wait" });
  return rows;
}

// While text is being written the text itself shows that something happens, and an open question waits for the reader.
const speaking = (row: Row | undefined): boolean =>
  row?.kind === "part" && (("state" in row.part && row.part.state === "streaming") || (row.part.type === "data-ask" && row.part.data.state === "pending"));

function answer(rows: Row[], message: ChatMessage, live: boolean): void {
  const first = rows.length;
  let step = 1;
  let sources: SourcePart[] | undefined;
  const cards = cardsOf(message);
  message.parts.forEach((part, index) => {
    const key = `${message.id}:${keyOfPart(part, index)}`;
    if (part.type === "source-url" || part.type === "source-document") {
      if (sources) sources.push(part);
      else rows.push({ key, kind: "sources", parts: (sources = [part]) });
      return;
    }
    sources = undefined;
    if (part.type === "step-start") {
      // A step that shows nothing has no line and no number, and none stands between a tool and the question about it.
      const next = message.parts.slice(index + 1).find((other) => other.type !== "step-start" && shown(other, cards));
      const about = next?.type === "data-ask" && message.parts.some((other, at) => at < index && isToolUIPart(other) && concerns(next.data, other));
      if (!about && rows.length > first && rows.at(-1)?.kind !== "step") rows.push({ key, kind: "step", number: ++step });
    } else if (shown(part, cards)) {
      const paired = part.type === "data-ask" && message.parts.some((other) => isToolUIPart(other) && concerns(part.data, other) && shown(other, cards));
      // The chat writes on in the part it has handed out: without a copy, what was drawn would always equal what is new.
      rows.push({ key, kind: "part", message, part: live ? { ...part } : part, live, paired });
    }
  });
  if (rows.at(-1)?.kind === "step") rows.pop();
  if (!live) rows.push({ key: `${message.id}:foot`, kind: "foot", message });
}

function keyOfPart(part: ChatPart, index: number): string {
  if (isToolUIPart(part)) return `tool:${part.toolCallId}`;
  return isDataUIPart(part) && part.id ? `${part.type}:${part.id}` : String(index);
}

type Tool = ToolUIPart | DynamicToolUIPart;

/** Cards are what stands in a message apart from its tools and says the same as some of them. */
interface Cards {
  asks: Question[];
  todos: boolean;
}

function cardsOf(message: ChatMessage): Cards {
  const asks = message.parts.flatMap((part) => (part.type === "data-ask" ? [part.data] : []));
  return { asks, todos: message.parts.some((part) => part.type === "data-todo") };
}

const concerns = (question: Question, tool: Tool): boolean => question.item_id === tool.toolCallId || question.question_id === tool.approval?.id;

const lists = new Set(["todowrite", "todoread", "taskcreate", "taskupdate", "tasklist", "taskget", "update_plan"]);

/**
 * carded: a card shows what this tool would. A list of todos has one for good, and so has a question in words; what waits
 * for an approval has one until it is decided.
 */
function carded(tool: Tool, { asks, todos }: Cards): boolean {
  if (todos && tool.type === "dynamic-tool" && lists.has(tool.toolName.toLowerCase())) return true;
  return asks.some((question) => {
    if (!concerns(question, tool)) return false;
    if (!question.item_id || question.kind === "input" || question.kind === "plan" || question.kind === "elicitation") return true;
    return question.state === "pending" && !!(question.command || question.changes?.length || question.tool);
  });
}

function shown(part: ChatPart, cards: Cards): boolean {
  if (isToolUIPart(part)) return !carded(part, cards);
  switch (part.type) {
    case "text":
      return part.text.length > 0;
    case "reasoning":
      return part.text.trim().length > 0;
    case "data-usage":
    case "data-phase":
    case "data-retry":
      return false;
    default:
      return true;
  }
}

const size = (value: unknown): number => (typeof value === "string" ? value.length : (JSON.stringify(value)?.length ?? 0));

/**
 * versionOf distinguishes states of one tool without looking at all that it printed: while it runs its input and its output
 * only grow, and what is over stays as it is.
 */
function versionOf(part: Tool): string {
  const said: unknown[] = [part.toolCallId, part.state, part.approval?.id, part.approval?.approved];
  if (part.state === "input-streaming") said.push(size(part.input));
  if (part.state === "output-available" && part.preliminary) {
    const { output, output_dropped } = (part.output ?? {}) as { output?: unknown; output_dropped?: number };
    said.push(typeof output === "string" ? output.length : size(part.output), output_dropped);
  }
  return said.join(" ");
}

/** samePart compares what is drawn: the chat copies its parts at every change, so identity proves nothing. */
export function samePart(a: ChatPart, b: ChatPart): boolean {
  if (a === b) return true;
  if (a.type !== b.type) return false;
  if ((a.type === "text" && b.type === "text") || (a.type === "reasoning" && b.type === "reasoning")) return a.state === b.state && a.text === b.text;
  if (isToolUIPart(a) && isToolUIPart(b)) return versionOf(a) === versionOf(b);
  return JSON.stringify(a) === JSON.stringify(b);
}

/** guess is a first height for a row that was never drawn. */
export function guess(row: Row | undefined): number {
  switch (row?.kind) {
    case "user":
      return 76;
    case "part":
      return row.part.type === "text" ? 40 + Math.ceil(row.part.text.length / 80) * 23 : 48;
    case "sources":
      return 60;
    default:
      return 36;
  }
}
