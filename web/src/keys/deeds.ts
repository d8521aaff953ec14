import { post } from "../api/http";
import type { Session } from "../api/types";
import { t } from "../i18n";
import type { Conversation } from "../state/conversation";
import { toMessage } from "../state/anchor";
import { go, pathOf } from "../state/route";
import { editSession, sessions } from "../state/sessions";
import { say, succeeded, tried } from "../ui/toast";

// What can be done with a chat by a key, in the palette or with a slash. Each reports its own failure.

/** fork copies a chat, whole or up to a run, and opens the copy. */
export async function fork(id: string, upTo?: string): Promise<void> {
  const made = await tried(post<Session>(`/sessions/${id}/fork`, { up_to_run_id: upTo }));
  if (!made) return;
  say(t("deed.forked"));
  go({ page: "chat", id: made.id });
}

/** archive puts a chat away, or takes it back; what was put away is not looked at any longer. */
export async function archive(id: string, archived: boolean): Promise<void> {
  if (!(await succeeded(editSession(id, { archived })))) return;
  say(t(archived ? "deed.archived" : "deed.unarchived"));
  if (archived) go({ page: "start" });
}

export async function rename(conversation: Conversation, name: string): Promise<boolean> {
  const session = await tried(editSession(conversation.id, { name }));
  if (session) conversation.side.set((old) => ({ ...old, session: old.session && { ...old.session, name: session.name } }));
  return session !== undefined;
}

/** compact has the agent shorten its own memory of the chat. */
export async function compact(conversation: Conversation): Promise<void> {
  await tried(post(`/sessions/${conversation.id}/compact`).then(() => conversation.catchUp()));
}

/** copyLink puts the address of a chat, or of a message in it, on the clipboard. */
export async function copyLink(id: string, message?: string): Promise<void> {
  const link = new URL(pathOf(message ? toMessage(id, message) : { page: "chat", id }), location.href);
  await copy(link.href);
}

async function copy(text: string): Promise<void> {
  // A page that came over plain http from another machine has no clipboard.
  const done = await (navigator.clipboard?.writeText(text) ?? Promise.reject(new Error())).then(
    () => true,
    () => false,
  );
  say(done ? t("deed.copied") : text);
}

/** step opens the chat after or before this one in the list. */
export function step(id: string | undefined, by: 1 | -1): void {
  const { items } = sessions.get();
  const at = items.findIndex((it) => it.id === id);
  const next = items[at < 0 ? 0 : at + by];
  if (next) go({ page: "chat", id: next.id });
}
