import { useEffect, useState } from "react";
import { t } from "../i18n";
import { login } from "../state/account";
import { prefs } from "../state/prefs";
import { type Chosen, loadOffers, nameOf, offers } from "../state/source";
import { useStore } from "../state/store";
import { Confirm } from "../ui/dialog";
import { FolderIcon } from "../ui/icons";
import { later } from "../ui/later";
import { useConversation } from "./context";

const SourceDialog = later(() => import("./source-dialog"));

/** useLocal: this browser is one of the machine that thole runs on. */
export const useLocal = (): boolean => useStore(login, (it) => it.state === "in" && it.account.local === true);

/** useSource is what a new chat works on: what was chosen for it, what the last one had, or what thole proposes. */
export function useSource(): [Chosen | undefined, (next: Chosen) => void] {
  const conversation = useConversation();
  const chosen = useStore(conversation.box, (box) => box.source);
  const before = useStore(prefs, (it) => it.source);
  const proposed = useStore(offers, (it) => it?.default);
  const local = useLocal();
  const kept = before && (local || (before.kind !== "here" && !before.repo?.startsWith("/"))) ? before : undefined;
  return [chosen ?? kept ?? proposed, (next) => conversation.box.set((old) => ({ ...old, source: next }))];
}

/** SourcePicker shows what a new chat works on, and changes it. */
export function SourcePicker() {
  const [source, choose] = useSource();
  const [open, setOpen] = useState(false);
  useEffect(() => void loadOffers().catch(() => {}), []); // without them there is still everything to choose from
  return (
    <>
      <button
        type="button"
        aria-label={`${t("source.label")}: ${nameOf(source)}`}
        aria-haspopup="dialog"
        title={source?.repo ?? source?.dir}
        onClick={() => setOpen(true)}
        className="flex h-7 min-w-0 items-center gap-1.5 rounded-lg px-2 text-muted hover:bg-hover hover:text-ink"
      >
        <FolderIcon className="size-3.5" />
        <span className="truncate">{nameOf(source)}</span>
        {source?.kind === "here" && <span className="shrink-0 rounded-md bg-warn-soft px-1.5 text-[11px] text-warn">{t("source.inPlace")}</span>}
      </button>
      <Confirm open={open} label={t("source.title")} onClose={() => setOpen(false)} className="w-[min(38rem,calc(100vw-1.5rem))]">
        <SourceDialog
          now={source}
          onClose={() => setOpen(false)}
          onChoose={(next) => {
            choose(next);
            setOpen(false);
          }}
        />
      </Confirm>
    </>
  );
}
