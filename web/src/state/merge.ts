import type { ChatMessage } from "../api/types";

/** names are what a message may be called: a message sent from here keeps our id until the server's own is known. */
const names = (message: ChatMessage): string[] => (message.metadata?.client_id ? [message.id, message.metadata.client_id] : [message.id]);

/** keyOf stays the same when the server's id replaces ours, so that nothing on the page is rebuilt. */
export const keyOf = (message: ChatMessage): string => message.metadata?.client_id ?? message.id;

/**
 * merge lays a page of the server's history, in reading order, over the messages at hand. The page is the truth for
 * what it covers; messages before it stay, and a message after it stays only while the server does not know it yet.
 */
export function merge(local: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  if (page.length === 0) return local;
  const covered = new Set(page.flatMap(names));
  const isCovered = (message: ChatMessage) => names(message).some((name) => covered.has(name));
  const first = local.findIndex(isCovered);
  if (first < 0) return [...local.filter(isKnown), ...page, ...local.filter((message) => !isKnown(message))];
  const after = local.slice(first).filter((message) => !isCovered(message) && !isKnown(message));
  return [...local.slice(0, first), ...page, ...after];
}

const isKnown = (message: ChatMessage): boolean => message.metadata?.run_id !== undefined || message.metadata?.session_id !== undefined;

/** older puts an earlier page before what is there. */
export function older(local: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  const known = new Set(local.flatMap(names));
  return [...page.filter((message) => !names(message).some((name) => known.has(name))), ...local];
}

/**
 * steady keeps what was shown while a resumed stream repeats it from its start: the same answer never shrinks on the page
 * just because the line was lost.
 */
export function steady(shown: ChatMessage[], next: ChatMessage[], replaying: boolean): ChatMessage[] {
  const last = next.at(-1);
  if (!replaying || !last || last.role !== "assistant") return next;
  const before = shown.findLast((message) => message.id === last.id);
  return before && weight(before) > weight(last) ? next.with(-1, before) : next;
}

function weight(message: ChatMessage): number {
  let sum = 0;
  for (const part of message.parts) sum += 1 + ("text" in part && typeof part.text === "string" ? part.text.length : 0);
  return sum;
}
