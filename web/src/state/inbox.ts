import { get, post, query } from "../api/http";
import type { Question, Questions, Reply, ServerEvent } from "../api/types";
import { listen } from "../events/client";
import { Store } from "./store";

/** Inbox is what waits for this user in all chats, oldest first. What was settled while the page is open stays until it is swept. */
export interface Inbox {
  items: Question[];
  state: "loading" | "idle" | "error";
}

export const inbox = new Store<Inbox>({ items: [], state: "loading" });

export const isOpen = (it: Question): boolean => it.state === "pending";
export const openCount = (it: Inbox): number => it.items.filter(isOpen).length;

let turn = 0;
/** heard: something happened since the question was asked, so that the answer may not have it. */
let heard = false;

/** loadInbox reads all open questions. One that is not among them any more was settled while nobody said so. */
export async function loadInbox(): Promise<void> {
  const mine = ++turn;
  heard = false;
  try {
    const items = await all();
    if (mine !== turn) return;
    if (heard) return await loadInbox();
    inbox.set((old) => ({ items: merged(old.items, items), state: "idle" }));
  } catch (error) {
    if (mine === turn) inbox.set((old) => ({ ...old, state: "error" }));
    throw error;
  }
}

/** all walks the pages; what is beyond some thousands waits until those are answered. */
async function all(): Promise<Question[]> {
  const items: Question[] = [];
  let cursor: string | undefined;
  do {
    const page: Questions = await get<Questions>(`/human-loop${query({ limit: 200, cursor })}`);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < 2000);
  return items;
}

/** merged keeps settled questions in their places: what is being read does not move. */
function merged(old: Question[], now: Question[]): Question[] {
  const open = new Map(now.map((it) => [it.question_id, it]));
  const kept = old.filter((it) => !isOpen(it) || open.has(it.question_id)).map((it) => open.get(it.question_id) ?? it);
  const known = new Set(kept.map((it) => it.question_id));
  return [...kept, ...now.filter((it) => !known.has(it.question_id))];
}

/** sweep forgets what is settled. */
export const sweep = (): void => inbox.set((old) => (old.items.every(isOpen) ? old : { ...old, items: old.items.filter(isOpen) }));

export async function reply(question: Question, answer: Reply): Promise<void> {
  const settled = await post<Question>(`/runs/${question.run_id}/human-loop/${question.question_id}/reply`, answer);
  change((it) => (it.question_id === settled.question_id ? settled : it));
}

function change(each: (it: Question) => Question | undefined): void {
  inbox.set((old) => {
    const items = old.items.flatMap((it) => each(it) ?? []);
    return items.length === old.items.length && items.every((it, at) => it === old.items[at]) ? old : { ...old, items };
  });
}

let soon: ReturnType<typeof setTimeout> | undefined;

/** agree reads again when a chat's status does not fit its questions for longer than a moment: they may be asked at another server. */
function agree(session: string, waits: boolean): void {
  const known = () => inbox.get().items.some((it) => it.session_id === session && isOpen(it));
  if (known() === waits) return;
  soon ??= setTimeout(() => {
    soon = undefined;
    if (known() !== waits) void loadInbox().catch(() => {});
  }, 700);
}

export function follow(event: ServerEvent): void {
  const { type, data } = event;
  if (type === "session.status" && event.session_id) return agree(event.session_id, !!(data.status?.waiting_on_approval || data.status?.waiting_on_input));
  if (!type.startsWith("human_loop.") && type !== "run.ended" && type !== "session.deleted") return;
  heard = true;
  switch (type) {
    case "human_loop.requested": {
      const asked = data.question;
      if (asked && !inbox.get().items.some((it) => it.question_id === asked.question_id)) inbox.set((old) => ({ ...old, items: [...old.items, asked] }));
      return;
    }
    case "human_loop.resolved":
      return change((it) =>
        it.question_id === data.question_id && isOpen(it)
          ? { ...it, state: data.state ?? "answered", answer: data.answer ?? it.answer, answered_by: data.answered_by, resolved_at: event.ts }
          : it,
      );
    case "run.ended": // a run that is over waits for nobody
      return change((it) => (it.run_id === event.run_id && isOpen(it) ? { ...it, state: "canceled", resolved_at: event.ts } : it));
    case "session.deleted":
      return change((it) => (it.session_id === event.session_id ? undefined : it));
  }
}

/** followInbox keeps the questions in step: each as it comes, and all of them after every reconnect. */
export const followInbox = (): (() => void) => listen({ event: follow, ready: () => void loadInbox().catch(() => {}) });
