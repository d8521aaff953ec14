import { type MouseEvent, useState } from "react";
import { download } from "../api/http";
import type { Session } from "../api/types";
import { t } from "../i18n";
import { go, pathOf } from "../state/route";
import { editSession, titleOf } from "../state/sessions";
import { ArchiveIcon, CheckIcon, DownIcon, MoreIcon, PencilIcon, PinIcon, ShareIcon, TrashIcon } from "../ui/icons";
import { sharing } from "../share/open";
import { Menu } from "../ui/menu";
import { ago } from "../ui/time";
import { tried } from "../ui/toast";
import { RenameField } from "./rename";

interface Props {
  session: Session;
  current: boolean;
  archived: boolean;
  onPick?: () => void;
  onDelete: () => void;
  onSelect: () => void;
}

export function Entry({ session, current, archived, onPick, onDelete, onSelect }: Props) {
  const [naming, setNaming] = useState(false);
  const title = titleOf(session) || t("history.untitled");
  if (naming)
    return (
      <li className="py-0.5">
        <RenameField session={session} onDone={() => setNaming(false)} />
      </li>
    );
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go({ page: "chat", id: session.id });
    onPick?.();
  };
  const save = (format: "markdown" | "json") => () => void tried(download(`/sessions/${session.id}/export?format=${format}`));
  return (
    <li className={`group flex items-center rounded-lg ${current ? "bg-hover" : "hover:bg-hover"}`}>
      <a
        href={pathOf({ page: "chat", id: session.id })}
        aria-current={current ? "page" : undefined}
        onClick={open}
        className="flex min-w-0 flex-1 items-center gap-2 rounded-lg px-2 py-1.5"
      >
        <Label session={session} strong={current} />
      </a>
      <Menu
        label={t("history.actions", { title: title.slice(0, 60) })}
        icon={<MoreIcon />}
        className="size-7 md:opacity-0 md:group-hover:opacity-100 md:group-focus-within:opacity-100 md:focus-visible:opacity-100"
        items={[
          { text: t("history.rename"), icon: <PencilIcon />, run: () => setNaming(true) },
          {
            text: t(session.pinned ? "history.unpin" : "history.pin"),
            icon: <PinIcon />,
            run: () => void tried(editSession(session.id, { pinned: !session.pinned })),
          },
          { text: t("share.open"), icon: <ShareIcon />, run: () => sharing.set(session.id) },
          { text: t("history.select"), icon: <CheckIcon />, run: onSelect },
          { text: t("export.markdown"), icon: <DownIcon />, run: save("markdown") },
          { text: t("export.json"), icon: <DownIcon />, run: save("json") },
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

/** Label is what the list says of a chat. */
export function Label({ session, strong = false }: { session: Session; strong?: boolean }) {
  const waiting = session.status?.waiting_on_approval || session.status?.waiting_on_input;
  return (
    <>
      <span className="min-w-0 flex-1">
        <span className={`block truncate text-[13px] ${strong ? "font-medium" : ""}`}>{titleOf(session) || t("history.untitled")}</span>
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
    </>
  );
}
