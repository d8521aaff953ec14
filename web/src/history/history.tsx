import { type FormEvent, useEffect, useState } from "react";
import type { Session } from "../api/types";
import { t, type Key } from "../i18n";
import { go, pathOf, route } from "../state/route";
import { deleteSession, editSession, loadSessions, moreSessions, sessions, titleOf } from "../state/sessions";
import { useStore } from "../state/store";
import { Button } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { ArchiveIcon, MoreIcon, PencilIcon, PlusIcon, SearchIcon, TrashIcon } from "../ui/icons";
import { Menu } from "../ui/menu";
import { ago } from "../ui/time";
import { succeeded, tried } from "../ui/toast";

/** History lists the chats of this user, newest first. */
export function History({ onPick }: { onPick?: () => void }) {
  const list = useStore(sessions);
  const here = useStore(route);
  const [search, setSearch] = useState(list.search);
  const [doomed, setDoomed] = useState<Session>();

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
      <nav aria-label={t("history.title")} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {grouped(list.items).map(([group, items]) => (
          <section key={group}>
            <h2 className="px-2 pb-1 pt-2 text-[11.5px] font-medium text-faint">{t(group)}</h2>
            <ul>
              {items.map((session) => (
                <Entry
                  key={session.id}
                  session={session}
                  current={session.id === current}
                  archived={list.archived}
                  onPick={onPick}
                  onDelete={() => setDoomed(session)}
                />
              ))}
            </ul>
          </section>
        ))}
        {list.items.length === 0 && list.state !== "loading" && (
          <p className="px-2 py-3 text-[13px] text-muted">
            {list.state === "error" ? t("history.error") : list.search ? t("history.none") : t("history.empty")}
          </p>
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
      </nav>
      <div className="border-t border-line p-2">
        <Button
          look="quiet"
          className="w-full justify-start"
          aria-pressed={list.archived}
          onClick={() => void tried(loadSessions({ archived: !list.archived }))}
        >
          <ArchiveIcon /> {list.archived ? t("history.current") : t("history.archived")}
        </Button>
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

interface EntryProps {
  session: Session;
  current: boolean;
  archived: boolean;
  onPick?: () => void;
  onDelete: () => void;
}

function Entry({ session, current, archived, onPick, onDelete }: EntryProps) {
  const [name, setName] = useState<string>();
  const title = titleOf(session) || t("history.untitled");
  const waiting = session.status?.waiting_on_approval || session.status?.waiting_on_input;
  const [saving, setSaving] = useState(false);
  // A name that was refused stays in the field.
  const rename = async (event: FormEvent) => {
    event.preventDefault();
    if (saving) return;
    const next = name?.trim();
    if (!next || next === session.name) return setName(undefined);
    setSaving(true);
    if (await succeeded(editSession(session.id, { name: next }))) setName(undefined);
    setSaving(false);
  };
  if (name !== undefined)
    return (
      <li className="py-0.5">
        <form onSubmit={rename}>
          <input
            autoFocus
            aria-label={t("history.rename")}
            value={name}
            onFocus={(event) => event.target.select()}
            onChange={(event) => setName(event.target.value)}
            onBlur={rename}
            onKeyDown={(event) => event.key === "Escape" && setName(undefined)}
            className="h-8 w-full rounded-lg border border-accent bg-surface px-2 text-[13px] outline-none"
          />
        </form>
      </li>
    );
  return (
    <li className={`group flex items-center rounded-lg ${current ? "bg-hover" : "hover:bg-hover"}`}>
      <a
        href={pathOf({ page: "chat", id: session.id })}
        aria-current={current ? "page" : undefined}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          go({ page: "chat", id: session.id });
          onPick?.();
        }}
        className="flex min-w-0 flex-1 items-center gap-2 rounded-lg px-2 py-1.5"
      >
        <span className="min-w-0 flex-1">
          <span className={`block truncate text-[13px] ${current ? "font-medium" : ""}`}>{title}</span>
          <span className="flex gap-1.5 truncate text-[11.5px] text-faint">
            <span>{session.provider}</span>
            <span>{ago(session.updated_at)}</span>
          </span>
        </span>
        {(session.status?.active || waiting) && (
          <span className={`pulse size-2 shrink-0 rounded-full ${waiting ? "bg-warn" : "bg-accent"}`}>
            <span className="sr-only">{waiting ? t("history.waiting") : t("history.active")}</span>
          </span>
        )}
      </a>
      <Menu
        label={t("history.actions", { title: title.slice(0, 60) })}
        icon={<MoreIcon />}
        className="size-7 md:opacity-0 md:group-hover:opacity-100 md:group-focus-within:opacity-100 md:focus-visible:opacity-100"
        items={[
          { text: t("history.rename"), icon: <PencilIcon />, run: () => setName(title) },
          {
            text: t(archived ? "history.unarchive" : "history.archive"),
            icon: <ArchiveIcon />,
            run: () => void tried(editSession(session.id, { archived: !archived })),
          },
          { text: t("history.delete"), icon: <TrashIcon />, danger: true, run: onDelete },
        ]}
      />
    </li>
  );
}

export function grouped(items: Session[], now = new Date()): [Key, Session[]][] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const day = 86_400_000;
  const groups: [Key, number][] = [
    ["group.today", midnight],
    ["group.yesterday", midnight - day],
    ["group.week", midnight - 7 * day],
    ["group.older", -Infinity],
  ];
  const out = new Map<Key, Session[]>();
  for (const item of items) {
    const at = Date.parse(item.updated_at);
    const [group] = groups.find(([, from]) => at >= from)!;
    out.set(group, [...(out.get(group) ?? []), item]);
  }
  return groups.flatMap(([group]) => (out.has(group) ? [[group, out.get(group)!] as [Key, Session[]]] : []));
}
