import { Store } from "../state/store";
import type { Comment } from "./patch";

// Comments outlive a reload, in this tab, until they are in the message field.

const place = (session: string): string => `thole.comments.${session}`;
const kept = new Map<string, Store<Comment[]>>();

/** commentsOf are the comments on one session's changes. */
export function commentsOf(session: string): Store<Comment[]> {
  const known = kept.get(session);
  if (known) return known;
  const store = new Store<Comment[]>(read(session));
  store.subscribe(() => {
    try {
      if (store.get().length > 0) sessionStorage.setItem(place(session), JSON.stringify(store.get()));
      else sessionStorage.removeItem(place(session));
    } catch {
      // A browser that keeps nothing still works for this visit.
    }
  });
  kept.set(session, store);
  return store;
}

function read(session: string): Comment[] {
  try {
    return JSON.parse(sessionStorage.getItem(place(session)) ?? "[]") as Comment[];
  } catch {
    return [];
  }
}
