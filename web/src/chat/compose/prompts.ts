import type { ChatMessage } from "../../api/types";

/** promptsOf are the texts that a person sent in a chat, the newest last; the same text twice in a row is one. */
export function promptsOf(messages: ChatMessage[]): string[] {
  const out: string[] = [];
  for (const message of messages) {
    const texts =
      message.role === "user"
        ? [message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")]
        : message.parts.flatMap((part) => (part.type === "data-steer" ? [part.data.text] : []));
    for (const text of texts.map((it) => it.trim())) if (text && text !== out.at(-1)) out.push(text);
  }
  return out;
}

/** Recall is a walk through earlier prompts: how far back it is, what it shows, and what was being written when it began. */
export interface Recall {
  back: number;
  shown: string;
  draft: string;
}

interface Field {
  text: string;
  start: number;
  end: number;
}

/**
 * recall goes one prompt back or forth, or returns nothing where the arrow belongs to the field. It belongs to the field
 * while the caret has somewhere to go: back from the beginning only, or from the end of what was recalled and not changed.
 */
export function recall(by: "back" | "forth", field: Field, prompts: string[], before: Recall | undefined): Recall | "draft" | undefined {
  if (field.start !== field.end) return undefined;
  const now = before && before.shown === field.text ? before : undefined;
  const atEnd = field.start === field.text.length;
  if (by === "back") {
    if (field.start !== 0 && !(now && atEnd)) return undefined;
    // What is above may have grown since, so that the place is counted from the end.
    const back = (now?.back ?? 0) + 1;
    const shown = prompts.at(-back);
    return shown === undefined ? now : { back, shown, draft: now ? now.draft : field.text }; // at the first one it stays
  }
  if (!now || !atEnd) return undefined;
  const shown = now.back > 1 ? prompts.at(1 - now.back) : undefined;
  return shown === undefined ? "draft" : { ...now, back: now.back - 1, shown };
}
