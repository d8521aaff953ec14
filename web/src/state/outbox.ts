import type { FileUIPart } from "ai";
import type { Problem } from "../api/http";
import { uuid } from "../api/http";
import type { Chosen } from "./source";

/** Message is what a person wrote. Its id goes with every attempt to send it, so that thole takes it once. */
export interface Message {
  id: string;
  text: string;
  files: FileUIPart[];
}

/**
 * Why says what is known of a message that came back.
 * refused: thole answered no. absent: it is known not to have arrived. unknown: nobody answered, so it may have arrived.
 * after: an earlier one came back, and this one was not tried. draft: it was never tried.
 */
export interface Why {
  state: "refused" | "absent" | "unknown" | "after" | "draft";
  text?: string;
  hint?: string;
  /** code is the class of a refusal, where thole said one. */
  code?: string;
  /** spent: thole will never finish what was begun under this id; another attempt needs another one. */
  spent?: boolean;
}

export interface Returned extends Message {
  why: Why;
}

/** Outbox is what was written and what thole does not have yet. Nothing leaves it before thole has it or a person drops it. */
export interface Outbox {
  /** text and files stand in the input field. */
  text: string;
  files: FileUIPart[];
  /** back is the message in the field as it was tried; a changed text is another message. */
  back?: Returned;
  /** aside came back while something else was being written. */
  aside: Returned[];
  /** under are under way. */
  under: Message[];
  /** lost is how many images a reload could not keep. */
  lost?: number;
  /** What a new chat starts with. */
  effort?: string;
  source?: Chosen;
}

export const emptyOutbox: Outbox = { text: "", files: [], aside: [], under: [] };

const isFree = (box: Outbox): boolean => box.text.trim() === "" && box.files.length === 0;

export const isEmpty = (box: Outbox): boolean => isFree(box) && box.aside.length === 0 && box.under.length === 0 && !box.effort && !box.source;

const sameFiles = (a: FileUIPart[], b: FileUIPart[]): boolean => a.length === b.length && a.every((file, at) => file.url === b[at]!.url);

/** take moves what stands in the field on its way. The same words tried again are the same message. */
export function take(box: Outbox): [Outbox, Message, Why?] | undefined {
  if (isFree(box)) return undefined;
  const text = box.text.trim();
  const same = box.back && box.back.text === text && sameFiles(box.back.files, box.files) ? box.back : undefined;
  const message: Message = { id: same && !same.why.spent ? same.id : uuid(), text, files: box.files };
  return [{ ...box, text: "", files: [], back: undefined, lost: undefined, under: [...box.under, message] }, message, same?.why];
}

/** takeAside sends a message that stands aside as it is. */
export function takeAside(box: Outbox, id: string): [Outbox, Message, Why?] | undefined {
  const found = box.aside.find((it) => it.id === id);
  if (!found) return undefined;
  const { why, ...message } = found;
  if (why.spent) message.id = uuid();
  return [{ ...box, aside: box.aside.filter((it) => it.id !== id), under: [...box.under, message] }, message, why];
}

/** giveBack puts a message that did not get through into the field, or aside when something else is being written there. */
export function giveBack(box: Outbox, id: string, why: Why): Outbox {
  const message = box.under.find((it) => it.id === id);
  if (!message) return box;
  const next = { ...box, under: box.under.filter((it) => it.id !== id) };
  const returned = { ...message, why };
  return isFree(box) ? { ...next, text: message.text, files: message.files, back: returned } : { ...next, aside: [...box.aside, returned] };
}

/** edit changes what stands in the field; an empty field remembers nothing. */
export function edit(box: Outbox, change: Partial<Pick<Outbox, "text" | "files">>): Outbox {
  const next = { ...box, ...change };
  return isFree(next) ? { ...next, back: undefined, lost: undefined } : next;
}

/** arrived drops a message that thole has, wherever it stands; a text that was changed since stays. */
export function arrived(box: Outbox, id: string): Outbox {
  const next = { ...box, under: box.under.filter((it) => it.id !== id), aside: box.aside.filter((it) => it.id !== id) };
  if (box.back?.id === id) {
    next.back = undefined;
    if (box.text.trim() === box.back.text && sameFiles(box.files, box.back.files)) Object.assign(next, { text: "", files: [] });
  }
  const changed = next.under.length !== box.under.length || next.aside.length !== box.aside.length || next.back !== box.back;
  return changed ? next : box;
}

/** learn changes what is known of a message that came back. */
export function learn(box: Outbox, id: string, why: Why): Outbox {
  return {
    ...box,
    back: box.back?.id === id ? { ...box.back, why } : box.back,
    aside: box.aside.map((it) => (it.id === id ? { ...it, why } : it)),
  };
}

export const unsure = (box: Outbox): Returned[] => [...(box.back ? [box.back] : []), ...box.aside].filter((it) => it.why.state === "unknown");

export const drop = (box: Outbox, id: string): Outbox => ({ ...box, aside: box.aside.filter((it) => it.id !== id) });

/** swap puts a message that stands aside into the field, and what is there in its place. */
export function swap(box: Outbox, id: string): Outbox {
  const at = box.aside.findIndex((it) => it.id === id);
  const chosen = box.aside[at];
  if (!chosen) return box;
  const same = box.back && box.back.text === box.text.trim() && sameFiles(box.back.files, box.files);
  const away: Returned = same ? box.back! : { id: uuid(), text: box.text.trim(), files: box.files, why: { state: "draft" } };
  return { ...box, text: chosen.text, files: chosen.files, back: chosen, aside: isFree(box) ? box.aside.toSpliced(at, 1) : box.aside.with(at, away) };
}

/** isRefusal: thole understood and took nothing. A 5xx may come from a server that had begun, or from a proxy before it. */
export const isRefusal = (problem: Problem): boolean => problem.status >= 400 && problem.status < 500;

/** reopen is an outbox as the next page finds it: what was under way when the last one ended may have arrived. */
export function reopen(box: Outbox): Outbox {
  return box.under.reduce((now, it) => giveBack(now, it.id, { state: "unknown" }), box);
}
