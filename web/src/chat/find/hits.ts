import { isToolUIPart } from "ai";
import type { ChatPart, FileChange } from "../../api/types";
import { translated } from "../../i18n/phrases";
import type { Row } from "../rows";
import type { Spot } from "./state";

/** plainOf is what a reader sees of markdown, nearly: the marks are gone, and links are their words. */
export function plainOf(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}\s+|>\s?|(`{3,}|~{3,}).*$)/gm, "")
    .replace(/(\*\*|__|~~|`)/g, "")
    .replace(/(^|[^\p{L}\p{N}*])\*(?=\S)|(?<=\S)\*(?![\p{L}\p{N}*])/gu, "$1");
}

const json = (value: unknown): string => (value === undefined ? "" : typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

function ofPart(part: ChatPart): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return plainOf(part.text);
    case "tool-command": {
      const output = part.state === "output-available" ? (part.output as { output?: string }).output : undefined;
      return [(part.input as { command?: string } | undefined)?.command, output, part.errorText].filter(Boolean).join("\n");
    }
    case "tool-file_change": {
      const changes = (part.input as { changes?: FileChange[] } | undefined)?.changes ?? [];
      return changes.map((it) => `${it.path}\n${it.diff ?? ""}`).join("\n");
    }
    case "data-steer":
    case "data-note":
      return part.data.text;
    case "data-error":
      return [translated(part.data).message, translated(part.data).hint].filter(Boolean).join("\n");
    case "data-todo":
      return part.data.todos.map((it) => it.content).join("\n");
    case "data-ask":
      return [part.data.command, part.data.reason, ...(part.data.questions?.map((it) => it.text) ?? [])].filter(Boolean).join("\n");
    default:
      if (!isToolUIPart(part)) return "";
      return [json(part.input), part.state === "output-available" ? json(part.output) : part.errorText].filter(Boolean).join("\n");
  }
}

/** textOf is what can be found in a row. */
export function textOf(row: Row): string {
  switch (row.kind) {
    case "user":
      return row.message.parts.map((part) => (part.type === "text" ? part.text : part.type === "file" ? (part.filename ?? "") : "")).join("\n");
    case "part":
      return ofPart(row.part);
    case "sources":
      return row.parts.map((it) => it.title ?? "").join("\n");
    default:
      return "";
  }
}

const most = 10_000;

/** hitsIn are the places of a text, in reading order. */
export function hitsIn(rows: Row[], text: string): Spot[] {
  const wanted = text.toLowerCase();
  const out: Spot[] = [];
  if (!wanted.trim()) return out;
  for (const row of rows) {
    const within = textOf(row).toLowerCase();
    let nth = 0;
    for (let at = within.indexOf(wanted); at >= 0 && out.length < most; at = within.indexOf(wanted, at + wanted.length)) out.push({ key: row.key, nth: nth++ });
  }
  return out;
}

const same = (a: Spot, b: Spot | undefined): boolean => a.key === b?.key && a.nth === b.nth;

export const indexOf = (hits: Spot[], now: Spot | undefined): number => hits.findIndex((it) => same(it, now));
