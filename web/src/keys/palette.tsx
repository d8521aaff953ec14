import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { query } from "../api/http";
import type { SearchHit, Session } from "../api/types";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { go } from "../state/route";
import { placeOfHit, useAsked, useHits } from "../state/search";
import { sessions, titleOf } from "../state/sessions";
import { useStore } from "../state/store";
import { Excerpt } from "../ui/excerpt";
import { SearchIcon } from "../ui/icons";
import { ago } from "../ui/time";
import type { Action, Group } from "./actions";
import { chordsOf } from "./chords";
import { Chords } from "./overview-keys";
import { rank } from "./rank";

const order: Group[] = ["chat", "pages", "chats", "look", "found"];
const mostChats = 8;

const asAction = (session: Session): Action => ({
  id: `chat-${session.id}`,
  group: "chats",
  title: titleOf(session).split("\n")[0]!.slice(0, 120) || t("history.untitled"),
  note: session.archived ? t("history.archived") : ago(session.updated_at),
  run: () => go({ page: "chat", id: session.id }),
});

const asPlace = (hit: SearchHit): Action => ({
  id: `hit-${hit.item_id}-${hit.seq}`,
  group: "found",
  title: hit.session.title || t("history.untitled"),
  note: ago(hit.run_at),
  hit,
  run: () => go(placeOfHit(hit)),
});

const chatsNamed = (asked: string) => `/sessions${query({ search: asked, limit: 20 })}`;

/** arrange puts what answers the query in order: in groups without a query, the best first with one. */
export function arrange(actions: Action[], known: Session[], found: Session[], hits: SearchHit[], asked: string): Action[] {
  const ranked = (items: Action[]) =>
    items
      .flatMap((it) => {
        const cost = rank(asked, it.title, it.words);
        return cost === undefined ? [] : [{ it, cost }];
      })
      .sort((a, b) => a.cost - b.cost)
      .map(({ it }) => it);
  // The server also knows chats that are not in the list.
  const all = [...known, ...found.filter((it) => !known.some((other) => other.id === it.id))];
  const byTitle = ranked(all.map((it) => asAction(it))).slice(0, mostChats);
  const shown = [...(asked ? ranked(actions) : actions), ...byTitle, ...hits.map(asPlace)];
  return order.flatMap((group) => shown.filter((it) => it.group === group));
}

/** Palette finds chats, pages and actions by what is typed. The field keeps the focus; arrows move through the list. */
export default function Palette({ actions, early, onClose }: { actions: Action[]; early?: () => string; onClose: () => void }) {
  const [text, setText] = useState(() => early?.() ?? "");
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const known = useStore(sessions, (it) => it.items);
  const asked = text.trim(); // not deferred: Enter takes what is shown for the last letter
  const { items: found, done: named } = useAsked<Session>(asked, chatsNamed);
  const { items: hits, done: searched } = useHits(asked);
  const done = named && searched;
  const shown = useMemo(() => arrange(actions, known, found, hits, asked), [actions, known, found, hits, asked]);
  const now = Math.min(at, shown.length - 1);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [now, shown]);

  const run = (action: Action | undefined) => {
    if (!action) return;
    onClose(); // first, so that the focus is back on the page before an action moves it
    action.run();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const last = shown.length - 1;
    const page = 8;
    const next: Record<string, () => number> = {
      ArrowDown: () => (now >= last ? 0 : now + 1),
      ArrowUp: () => (now <= 0 ? last : now - 1),
      PageDown: () => Math.min(last, now + page),
      PageUp: () => Math.max(0, now - page),
    };
    if (event.key in next) setAt(next[event.key]!());
    else if (event.key === "Home" && event.ctrlKey) setAt(0);
    else if (event.key === "End" && event.ctrlKey) setAt(last);
    else if (event.key === "Enter") run(shown[now]);
    else return;
    event.preventDefault();
  };

  return (
    <div className="flex max-h-[inherit] flex-col">
      <label className="flex h-12 shrink-0 items-center gap-2.5 border-b border-line px-4">
        <SearchIcon className="size-4 text-faint" />
        <input
          autoFocus
          role="combobox"
          aria-label={t("palette.label")}
          aria-expanded="true"
          aria-haspopup="listbox"
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={shown[now] ? `${id}-${now}` : undefined}
          placeholder={t("palette.placeholder")}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={keys}
          className="min-w-0 flex-1 bg-transparent text-[15px] outline-none placeholder:text-faint"
        />
      </label>
      <div ref={list} id={`${id}-list`} role="listbox" aria-label={t("palette.label")} className="min-h-0 flex-1 overflow-y-auto p-2">
        {order.map((group) => {
          const items = shown.filter((it) => it.group === group);
          if (items.length === 0) return null;
          return (
            <div key={group} role="group" aria-labelledby={`${id}-${group}`}>
              <div id={`${id}-${group}`} className="px-2 pb-1 pt-2 text-[11.5px] font-medium text-faint">
                {t(`palette.${group}` as Key)}
              </div>
              {items.map((action) => {
                const index = shown.indexOf(action);
                return (
                  <div
                    key={action.id}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === now}
                    onPointerMove={() => setAt(index)}
                    onClick={() => run(action)}
                    className={`flex min-h-9 cursor-pointer items-center gap-3 rounded-lg px-2 text-[13px] ${index === now ? "bg-hover" : ""}`}
                  >
                    <span className="min-w-0 flex-1 truncate py-1">
                      {action.title}
                      {action.hit && <Excerpt hit={action.hit} className="block truncate" />}
                    </span>
                    {action.note && <span className="shrink-0 text-[11.5px] text-faint">{action.note}</span>}
                    {action.shortcut && <Chords chords={chordsOf(action.shortcut).slice(0, 1)} />}
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
      {shown.length === 0 && <p className="px-4 pb-4 text-[13px] text-muted">{done ? t("history.none") : t("palette.searching")}</p>}
      <p role="status" className="sr-only">
        {done ? t("palette.count", { n: shown.length }) : ""}
      </p>
    </div>
  );
}
