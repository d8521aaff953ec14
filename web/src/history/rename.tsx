import { type FormEvent, useState } from "react";
import type { Session } from "../api/types";
import { t } from "../i18n";
import { editSession, titleOf } from "../state/sessions";
import { succeeded } from "../ui/toast";

/** RenameField gives a chat a name where its title stands. A name that was refused stays in the field. */
export function RenameField({ session, onDone, className = "" }: { session: Session; onDone: () => void; className?: string }) {
  const [name, setName] = useState(() => titleOf(session));
  const [saving, setSaving] = useState(false);
  const [left, setLeft] = useState(false);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (saving || left) return;
    const next = name.trim();
    if (!next || next === titleOf(session)) return onDone();
    setSaving(true);
    if (await succeeded(editSession(session.id, { name: next }))) onDone();
    setSaving(false);
  };
  return (
    <form onSubmit={(event) => void save(event)} className={className}>
      <input
        autoFocus
        aria-label={t("history.rename")}
        maxLength={200}
        value={name}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setName(event.target.value)}
        onBlur={(event) => void save(event)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          setLeft(true);
          onDone();
        }}
        className="h-8 w-full min-w-0 rounded-lg border border-accent bg-surface px-2 text-[13px] outline-none"
      />
    </form>
  );
}
