import { download } from "../api/http";
import type { SearchHit, Session } from "../api/types";
import { t, type Key } from "../i18n";
import type { Conversation } from "../state/conversation";
import { showPanel, toggleChats, toggleDetails } from "../state/layout";
import { prefs, setPrefs, type Theme } from "../state/prefs";
import { can, providerNamed } from "../state/providers";
import { go, type Route, route } from "../state/route";
import { sharing } from "../share/open";
import { tried } from "../ui/toast";
import type { ShortcutName } from "./chords";
import { archive, compact, copyLink, fork } from "./deeds";
import { opened } from "./open";

export type Group = "chat" | "pages" | "look" | "chats" | "found";

/** Action is something that the palette offers. */
export interface Action {
  id: string;
  group: Group;
  title: string;
  /** words that find it too. */
  words?: string;
  note?: string;
  /** The place in a message that it leads to. */
  hit?: SearchHit;
  shortcut?: ShortcutName;
  run: () => void;
}

/** ofChat are the actions of the chat that is open; those that it cannot do now are left out, all of its own until its session is here. */
export function ofChat(conversation: Conversation, session: Session | undefined, hooks: { focus: () => void; find: () => void }): Action[] {
  const action = (id: string, run: () => void, rest: Partial<Action> = {}): Action => ({ id, group: "chat", title: t(`act.${id}` as Key), run, ...rest });
  const out: Action[] = [];
  if (route.get().page !== "chat" && route.get().page !== "new") return out;
  if (session?.active_run_id) out.push(action("stop", () => void tried(conversation.stop()), { shortcut: "stop" }));
  out.push(action("composer", hooks.focus, { shortcut: "composer" }));
  if (!session) return out;
  const provider = providerNamed(session.provider);
  out.push(action("find", hooks.find, { shortcut: "find" }));
  out.push(action("changes", () => showPanel("changes"), { shortcut: "changes", words: "diff" }));
  out.push(action("rename", () => opened.set("rename"), { words: "title" }));
  if (can(provider, "fork")) out.push(action("fork", () => void fork(session.id), { words: "branch copy" }));
  if (!session.active_run_id && session.runs > 0) out.push(action("compact", () => void compact(conversation), { words: "context memory" }));
  out.push(action("link", () => void copyLink(session.id), { words: "url" }));
  out.push(action("share", () => sharing.set(session.id), { words: "public link read" }));
  for (const format of ["markdown", "json"] as const)
    out.push(action(`export.${format}`, () => void tried(download(`/sessions/${session.id}/export?format=${format}`)), { words: "download save transcript" }));
  out.push(action(session.archived ? "unarchive" : "archive", () => void archive(session.id, !session.archived)));
  return out;
}

/** ofPage are the actions that are always there. */
export function ofPage(): Action[] {
  const page = (id: string, to: Route, rest: Partial<Action> = {}): Action => ({
    id,
    group: "pages",
    title: t(`act.${id}` as Key),
    run: () => go(to),
    ...rest,
  });
  const { theme, language } = prefs.get();
  const look = (theme: Theme): Action => ({
    id: `theme-${theme}`,
    group: "look",
    title: t(`act.theme.${theme}`),
    words: "appearance theme",
    run: () => setPrefs({ theme }),
  });
  const other = language === "zh" ? "en" : "zh";
  return [
    page("new", { page: "new" }, { shortcut: "new" }),
    page("inbox", { page: "inbox" }, { words: "questions asks" }),
    page("settings", { page: "settings" }, { words: "theme language tokens notices" }),
    page("usage", { page: "usage" }, { words: "cost tokens budget" }),
    page("connections", { page: "connections" }, { words: "login secrets keys" }),
    { id: "shortcuts", group: "pages", title: t("act.shortcuts"), shortcut: "overview", words: "keyboard help", run: () => opened.set("overview") },
    { id: "chats", group: "look", title: t("act.chats"), shortcut: "chats", words: "sidebar history", run: toggleChats },
    { id: "details", group: "look", title: t("act.details"), shortcut: "details", words: "panel sidebar", run: toggleDetails },
    ...(["system", "light", "dark"] as const).filter((it) => it !== theme).map(look),
    { id: "language", group: "look", title: t("act.language"), words: "language english chinese 中文 语言", run: () => setPrefs({ language: other }) },
  ];
}
