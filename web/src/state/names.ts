import { useEffect } from "react";
import { get } from "../api/http";
import type { Session } from "../api/types";
import { sessions, titleOf } from "./sessions";
import { Store, useStore } from "./store";

/** Titles of chats that the list in the side bar does not have, by id. */
const found = new Store<Record<string, string>>({});
const asked = new Map<string, Promise<string>>();

const listed = (id: string): string => titleOf(sessions.get().items.find((it) => it.id === id));

/** nameOf is a chat's title, from the list or else from the server; "": nobody knows. */
export async function nameOf(id: string): Promise<string> {
  return listed(id) || (found.get()[id] ?? ask(id));
}

function ask(id: string): Promise<string> {
  const before = asked.get(id);
  if (before) return before;
  const now = get<Session>(`/sessions/${encodeURIComponent(id)}`)
    .then(titleOf, () => "")
    .then((title) => {
      found.set((old) => ({ ...old, [id]: title }));
      return title;
    })
    .finally(() => asked.delete(id));
  asked.set(id, now);
  return now;
}

/** useName is nameOf for components; it follows a rename where the list has the chat. */
export function useName(id: string): string {
  const name = useStore(sessions, (it) => titleOf(it.items.find((item) => item.id === id)));
  const other = useStore(found, (it) => it[id]);
  const missing = !name && other === undefined;
  useEffect(() => {
    if (missing) void ask(id);
  }, [missing, id]);
  return name || other || "";
}
