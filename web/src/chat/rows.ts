import { isDataUIPart, isToolUIPart, type SourceDocumentUIPart, type SourceUrlUIPart } from "ai";
import type { ChatMessage, ChatPart } from "../api/types";
import { keyOf } from "../state/merge";

export type SourcePart = SourceUrlUIPart | SourceDocumentUIPart;

/** Row is one line of the list. A run with thousands of items is thousands of rows, and only those in sight are drawn. */
export type Row =
  | { key: string; kind: "top"; more: boolean }
  | { key: string; kind: "user"; message: ChatMessage }
  | { key: string; kind: "step"; number: number }
  | { key: string; kind: "part"; message: ChatMessage; part: ChatPart; live: boolean }
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
  message.parts.forEach((part, index) => {
    const key = `${message.id}:${keyOfPart(part, index)}`;
    if (part.type === "source-url" || part.type === "source-document") {
      if (sources) sources.push(part);
      else rows.push({ key, kind: "sources", parts: (sources = [part]) });
      return;
    }
    sources = undefined;
    if (part.type === "step-start") {
      // A step that shows nothing has no line and no number.
      if (rows.length > first && rows.at(-1)?.kind !== "step") rows.push({ key, kind: "step", number: ++step });
    } else if (shown(part, message)) {
      // The chat writes on in the part it has handed out: without a copy, what was drawn would always equal what is new.
      rows.push({ key, kind: "part", message, part: live ? { ...part } : part, live });
    }
  });
  if (rows.at(-1)?.kind === "step") rows.pop();
  if (!live) rows.push({ key: `${message.id}:foot`, kind: "foot", message });
}

function keyOfPart(part: ChatPart, index: number): string {
  if (isToolUIPart(part)) return `tool:${part.toolCallId}`;
  return isDataUIPart(part) && part.id ? `${part.type}:${part.id}` : String(index);
}

function shown(part: ChatPart, message: ChatMessage): boolean {
  switch (part.type) {
    case "text":
      return part.text.length > 0;
    case "reasoning":
      return part.text.trim().length > 0;
    case "data-usage":
    case "data-phase":
    case "data-retry":
      return false;
    case "dynamic-tool":
      // Questions about rights and plans have a part of their own only to hang on; their card says it all.
      return !(part.approval && message.parts.some((other) => other.type === "data-ask" && other.data.question_id === part.approval?.id && !other.data.item_id));
    default:
      return true;
  }
}

/** samePart compares what is drawn: the chat copies its parts at every change, so identity proves nothing. */
export function samePart(a: ChatPart, b: ChatPart): boolean {
  if (a === b) return true;
  if (a.type !== b.type) return false;
  if ((a.type === "text" && b.type === "text") || (a.type === "reasoning" && b.type === "reasoning")) return a.state === b.state && a.text === b.text;
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
