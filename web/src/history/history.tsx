import { useEffect, useRef, useState } from "react";
import type { Session } from "../api/types";
import { t } from "../i18n";
import { inbox, openCount } from "../state/inbox";
import { go, route } from "../state/route";
import { deleteSession, loadSessions, moreSessions, sessions, titleOf } from "../state/sessions";
import { useStore } from "../state/store";
import { Button } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { later } from "../ui/later";
import { ArchiveIcon, CheckIcon, InboxIcon, PlusIcon, SearchIcon } from "../ui/icons";
import { Link } from "../ui/link";
import { succeeded, tried } from "../ui/toast";
import { Entry } from "./entry";
import { between, grouped, type Selected } from "./groups";

// What a search or a selection needs comes in files of their own.
const Found = later(() => import("./found"));
const Tools = later(async () => ({ default: (await import("./selection")).Tools }));
const Choosable = later(async () => ({ default: (await import("./selection")).Choosable }));

/** History lists the chats of this user, newest first. */
export function History({ onPick }: { onPick?: () => void }) {
  const list = useStore(sessions);
  const here = useStore(route);
  const [search, setSearch] = useState(list.search);
  const [doomed, setDoomed] = useState<Session>();
  const [selected, setSelected] = useState<Selected>();
  const anchor = useRef<string>(undefined);

  useEffect(() => {
    if (search === sessions.get().search) return;
    const timer = setTimeout(() => void loadSessions({ search }).catch(() => {}), 200);
    return () => clearTimeout(timer);
  }, [search]);

  const current = here.page === "chat" ? here.id : undefined;
  const remove = async (session: Session) => {
    setDoomed(undefined);
    if (!(await succeeded(deleteSession(session.id)))) return;
    if (session.id === current) go({ page: "new" }, true);
  };

  const choose = (next: Selected) => {
    if (!next) anchor.current = undefined;
    setSelected(next);
  };
  const toggle = (id: string, range: boolean) => {
    const next = new Set(selected);
    if (range) for (const it of between(grouped(list.items).flatMap(([, items]) => items), anchor.current, id)) next.add(it);
    else if (!next.delete(id)) next.add(id);
    anchor.current = id;
    setSelected(next);
  };

  return (
    <div className="flex h-full flex-col">
      <div className="space-y-2 p-3">
        <Button
          className="w-full"
          onClick={() => {
            go({ page: "new" });
            onPick?.();
          }}
        >
          <PlusIcon /> {t("history.new")}
        </Button>
        <InboxLink onPick={onPick} />
        <label className="flex h-8 items-center gap-2 rounded-lg border border-line bg-ground px-2.5 focus-within:border-accent">
          <SearchIcon className="size-3.5 text-faint" />
          <input
            type="search"
            aria-label={t("history.search")}
            placeholder={t("history.search")}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            className="min-w-0 flex-1 bg-transparent text-[13px] outline-none placeholder:text-faint"
          />
        </label>
      </div>
      {selected && (
        <Tools
          items={list.items}
          archived={list.archived}
          selected={selected}
          onChange={choose}
          onGone={(ids) => current && ids.includes(current) && go({ page: "new" }, true)}
        />
      )}
      <nav aria-label={t("history.title")} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {grouped(list.items).map(([group, items]) => (
          <section key={group}>
            <h2 className="px-2 pb-1 pt-2 text-[11.5px] font-medium text-faint">{t(group)}</h2>
            <ul>
              {items.map((session) =>
                selected ? (
                  <Choosable
                    key={session.id}
                    session={session}
                    on={selected.has(session.id)}
                    onToggle={(range) => toggle(session.id, range)}
                    onEnd={() => choose(undefined)}
                  />
                ) : (
                  <Entry
                    key={session.id}
                    session={session}
                    current={session.id === current}
                    archived={list.archived}
                    onPick={onPick}
                    onDelete={() => setDoomed(session)}
                    onSelect={() => toggle(session.id, false)}
                  />
                ),
              )}
            </ul>
          </section>
        ))}
        {list.items.length === 0 && list.state !== "loading" && !(list.search && list.state === "idle") && (
          <p className="px-2 py-3 text-[13px] text-muted">{t(list.state === "error" ? "history.error" : "history.empty")}</p>
        )}
        {list.state === "error" && (
          <Button look="quiet" onClick={() => void loadSessions().catch(() => {})}>
            {t("app.again")}
          </Button>
        )}
        {list.next && (
          <Button look="quiet" className="mt-1 w-full" disabled={list.state === "loading"} onClick={() => void moreSessions()}>
            {t("history.more")}
          </Button>
        )}
        {list.search.trim() && !selected && <Found asked={list.search.trim()} archived={list.archived} onPick={onPick} />}
      </nav>
      <div className="flex border-t border-line p-2">
        <Button
          look="quiet"
          className="flex-1 justify-start"
          aria-pressed={list.archived}
          onClick={() => {
            choose(undefined);
            void tried(loadSessions({ archived: !list.archived }));
          }}
        >
          <ArchiveIcon /> {list.archived ? t("history.current") : t("history.archived")}
        </Button>
        {list.items.length > 0 && (
          <Button look="quiet" aria-pressed={!!selected} onClick={() => choose(selected ? undefined : new Set())}>
            <CheckIcon /> {t("history.select")}
          </Button>
        )}
      </div>
      <Confirm open={!!doomed} label={t("history.deleteTitle")} onClose={() => setDoomed(undefined)}>
        <h2 className="text-[15px] font-semibold">{t("history.deleteTitle")}</h2>
        <p className="mt-1 text-[13px] text-muted wrap-anywhere">{t("history.deleteText", { title: titleOf(doomed).slice(0, 80) || t("history.untitled") })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={() => setDoomed(undefined)}>{t("common.cancel")}</Button>
          <Button look="danger" onClick={() => doomed && void remove(doomed)}>
            {t("history.delete")}
          </Button>
        </div>
      </Confirm>
    </div>
  );
}

function InboxLink({ onPick }: { onPick?: () => void }) {
  const open = useStore(inbox, openCount);
  const here = useStore(route, (it) => it.page === "inbox");
  return (
    <Link
      to={{ page: "inbox" }}
      onClick={onPick}
      current={here}
      className={`flex h-8 items-center gap-2 rounded-lg px-2.5 text-[13px] font-medium hover:bg-hover ${here ? "bg-hover" : ""}`}
    >
      <InboxIcon className="size-4 text-muted" />
      <span className="flex-1">{t("inbox.title")}</span>
      {open > 0 && (
        <span className="rounded-full bg-warn-soft px-1.5 text-[11.5px] leading-[18px] text-warn">
          <span aria-hidden="true">{open}</span>
          <span className="sr-only">{t(open === 1 ? "inbox.one" : "inbox.many", { n: open })}</span>
        </span>
      )}
    </Link>
  );
}
