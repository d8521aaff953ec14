import { type KeyboardEvent, type ReactNode, useState } from "react";
import type { Session } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { translated } from "../i18n/phrases";
import { type BulkAction, changeSessions } from "../state/sessions";
import { Button } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { say, tried } from "../ui/toast";
import { Label } from "./entry";
import type { Selected } from "./groups";

interface Props {
  items: Session[];
  archived: boolean;
  selected: ReadonlySet<string>;
  onChange: (selected: Selected) => void;
  /** Called with what is gone. */
  onGone: (ids: string[]) => void;
}

/** Tools acts on what is selected, all at once; each chat is done or refused by itself. */
export function Tools({ items, archived, selected, onChange, onGone }: Props) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const ids = items.filter((it) => selected.has(it.id)).map((it) => it.id);
  const run = async (action: BulkAction) => {
    setBusy(true);
    setAsking(false);
    const out = await tried(changeSessions(action, ids));
    setBusy(false);
    if (!out) return;
    const left = out.items.filter((it) => !it.done);
    if (action === "delete") onGone(out.items.filter((it) => it.done).map((it) => it.id));
    if (left.length) say(t("history.someLeft", { n: left.length }), left[0]!.error && translated(left[0]!.error).message);
    onChange(left.length ? new Set(left.map((it) => it.id)) : undefined);
  };
  const all = ids.length === items.length;
  const pin = items.some((it) => selected.has(it.id) && !it.pinned);
  const act = (text: string, action: BulkAction): ReactNode => (
    <Button look="quiet" className="px-2" disabled={busy || ids.length === 0} onClick={() => void run(action)}>
      {text}
    </Button>
  );
  return (
    <div role="toolbar" aria-label={t("history.selection")} className="space-y-1 border-b border-line px-3 pb-2">
      <div className="flex items-center justify-between gap-2">
        <div className="flex items-center gap-2 px-2 text-[13px]">
          <input
            type="checkbox"
            aria-label={t("history.selectAll")}
            className="size-4 accent-[var(--accent)]"
            checked={all && ids.length > 0}
            onChange={() => onChange(new Set(all ? [] : items.map((it) => it.id)))}
          />
          <span role="status">{t("history.selected", { n: ids.length })}</span>
        </div>
        <Button look="quiet" onClick={() => onChange(undefined)}>
          {t("history.selectEnd")}
        </Button>
      </div>
      <div className="flex flex-wrap">
        {act(t(pin ? "history.pin" : "history.unpin"), pin ? "pin" : "unpin")}
        {act(t(archived ? "history.unarchive" : "history.archive"), archived ? "unarchive" : "archive")}
        <Button look="quiet" className="px-2 text-bad" disabled={busy || ids.length === 0} onClick={() => setAsking(true)}>
          {t("history.delete")}
        </Button>
      </div>
      <Confirm open={asking} label={t("history.deleteMany", { n: ids.length })} onClose={() => setAsking(false)}>
        <h2 className="text-[15px] font-semibold">{t("history.deleteMany", { n: ids.length })}</h2>
        <p className="mt-1 text-[13px] text-muted">{t("history.deleteManyText")}</p>
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t("common.cancel")}</Button>
          <Button look="danger" onClick={() => void run("delete")}>
            {t("history.delete")}
          </Button>
        </div>
      </Confirm>
    </div>
  );
}

/** Choosable is an entry while chats are chosen: Space or a tap takes it, Shift takes all up to it, Escape ends the choice. */
export function Choosable({ session, on, onToggle, onEnd }: { session: Session; on: boolean; onToggle: (range: boolean) => void; onEnd: () => void }) {
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    onEnd();
  };
  return (
    <li className={`rounded-lg ${on ? "bg-accent-soft" : "hover:bg-hover"}`}>
      <label className="flex min-w-0 cursor-pointer select-none items-center gap-2.5 px-2 py-1.5">
        <input
          type="checkbox"
          className="size-4 shrink-0 accent-[var(--accent)]"
          checked={on}
          onKeyDown={keys}
          onChange={(event) => onToggle((event.nativeEvent as globalThis.MouseEvent).shiftKey === true)}
        />
        <Label session={session} />
      </label>
    </li>
  );
}
