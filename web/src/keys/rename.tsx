import { type FormEvent, useState } from "react";
import { t } from "../i18n";
import "../i18n/later";
import type { Conversation } from "../state/conversation";
import { titleOf } from "../state/sessions";
import { Button } from "../ui/controls";
import { rename } from "./deeds";

/** Rename asks for another name of the chat. */
export default function Rename({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const [name, setName] = useState(() => titleOf(conversation.side.get().session).split("\n")[0]!);
  const [saving, setSaving] = useState(false);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (saving || !name.trim()) return;
    setSaving(true);
    if (await rename(conversation, name.trim())) onClose();
    setSaving(false);
  };
  return (
    <form onSubmit={save}>
      <h2 className="mb-3 text-[15px] font-semibold">{t("act.rename")}</h2>
      <input
        autoFocus
        aria-label={t("history.rename")}
        value={name}
        maxLength={200}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setName(event.target.value)}
        className="h-9 w-full rounded-lg border border-line-strong bg-surface px-2.5 text-[14px]"
      />
      <div className="mt-4 flex justify-end gap-2">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" look="primary" disabled={saving || !name.trim()}>
          {t("common.save")}
        </Button>
      </div>
    </form>
  );
}
