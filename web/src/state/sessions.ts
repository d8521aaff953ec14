import { get, post, query, request } from "../api/http";
import type { BulkIn, BulkOut, ServerEvent, Session, Sessions } from "../api/types";
import { listen } from "../events/client";
import { Store } from "./store";

export interface SessionList {
  items: Session[];
  next?: string;
  state: "idle" | "loading" | "error";
  search: string;
  archived: boolean;
}

export const sessions = new Store<SessionList>({ items: [], state: "idle", search: "", archived: false });

let turn = 0;

/** loadSessions reads the first page; an answer that was overtaken by a newer question is dropped. */
export async function loadSessions(change: Partial<Pick<SessionList, "search" | "archived">> = {}): Promise<Session[]> {
  const mine = ++turn;
  const before = sessions.get().archived;
  sessions.set((old) => ({ ...old, ...change, state: "loading" }));
  const { search, archived } = sessions.get();
  try {
    const page = await get<Sessions>(`/sessions${query({ search, archived, limit: 50 })}`);
    if (mine === turn) sessions.set((old) => ({ ...old, items: page.items, next: page.next, state: "idle" }));
    return page.items;
  } catch (error) {
    // The items are still those of before, and so is what they are called.
    if (mine === turn) sessions.set((old) => ({ ...old, archived: before, state: "error" }));
    throw error;
  }
}

export async function moreSessions(): Promise<void> {
  const { next, search, archived, state } = sessions.get();
  if (!next || state === "loading") return;
  const mine = ++turn;
  sessions.set((old) => ({ ...old, state: "loading" }));
  try {
    const page = await get<Sessions>(`/sessions${query({ search, archived, limit: 50, cursor: next })}`);
    if (mine !== turn) return;
    const known = new Set(sessions.get().items.map((it) => it.id));
    sessions.set((old) => ({ ...old, items: [...old.items, ...page.items.filter((it) => !known.has(it.id))], next: page.next, state: "idle" }));
  } catch {
    if (mine === turn) sessions.set((old) => ({ ...old, state: "error" }));
  }
}

const put = (id: string, change: Partial<Session>): void =>
  sessions.set((old) => ({ ...old, items: old.items.map((it) => (it.id === id ? { ...it, ...change } : it)) }));

const drop = (id: string): void => {
  sessions.set((old) => ({ ...old, items: old.items.filter((it) => it.id !== id) }));
  askAgain();
};

// A list that was asked for before a change may not have it: what is under way is overtaken by another question.
function askAgain(): void {
  if (sessions.get().state === "loading") loadSessions().catch(() => {});
}

type Edit = Partial<Pick<Session, "name" | "archived" | "provider" | "model" | "effort" | "execution_profile" | "pinned">>;

export async function editSession(id: string, change: Edit): Promise<Session> {
  const { data } = await request<Session>("PATCH", `/sessions/${id}`, { body: change });
  if (change.archived !== undefined && change.archived !== sessions.get().archived) drop(id);
  else {
    put(id, data);
    if (change.pinned !== undefined) reloadSoon();
    else askAgain();
  }
  return data;
}

export type BulkAction = BulkIn["action"];

/** most is how many chats one request may change. */
const most = 200;

/** changeSessions does the same to many chats; each is done or refused by itself. */
export async function changeSessions(action: BulkAction, ids: string[]): Promise<BulkOut> {
  const out: BulkOut = { done: 0, items: [] };
  try {
    for (let at = 0; at < ids.length; at += most) {
      const part = await post<BulkOut>("/sessions/bulk", { action, ids: ids.slice(at, at + most) });
      out.done += part.done;
      out.items.push(...part.items);
    }
  } finally {
    await loadSessions().catch(() => {}); // also after a part that failed: what came before it is done
  }
  return out;
}

export async function deleteSession(id: string): Promise<void> {
  await request("DELETE", `/sessions/${id}`);
  drop(id);
}

/** titleOf is a person's name for the chat, else the title that was made for it, else how its first message begins. */
export const titleOf = (session: Pick<Session, "name" | "preview"> & { title?: string } | undefined): string =>
  session?.name || session?.title || session?.preview.trim().split("\n")[0] || "";

let soon: ReturnType<typeof setTimeout> | undefined;
function reloadSoon(): void {
  soon ??= setTimeout(() => {
    soon = undefined;
    loadSessions().catch(() => {});
  }, 250);
}

function follow(event: ServerEvent): void {
  const id = event.session_id;
  if (!id) return;
  const known = sessions.get().items.some((it) => it.id === id);
  switch (event.type) {
    case "session.deleted":
      return drop(id);
    case "session.status":
      if (event.data.status) put(id, { status: event.data.status });
      return;
    case "session.updated":
      if (known && event.data.name !== undefined) put(id, { name: event.data.name });
      if (event.data.archived !== undefined || event.data.pinned !== undefined || !known) reloadSoon();
      return;
    case "session.created":
    case "run.started":
    case "run.ended":
      return reloadSoon();
  }
}

/** followSessions keeps the list in step: facts as they come, and the whole list after every reconnect. */
export const followSessions = (): (() => void) => listen({ event: follow, ready: reloadSoon });
