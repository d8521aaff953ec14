import { useCallback, useEffect, useState } from "react";
import { get, post } from "../api/http";
import type { Files } from "../api/types";
import { useSide } from "../chat/context";
import { t } from "../i18n";
import { translatedLine } from "../i18n/phrases";
import "../i18n/later";
import { Button, Notice } from "../ui/controls";
import { moment, span, useNow } from "../ui/time";
import { tried } from "../ui/toast";

/** useFiles asks how far the files are saved: when a run moves, and again while they are being saved. */
function useFiles(): { files?: Files; busy: boolean; save: () => void } {
  const session = useSide((side) => side.session?.id);
  const moved = useSide((side) => `${side.run?.id} ${side.run?.outcome} ${side.phases.length}`);
  const [files, setFiles] = useState<Files>();
  const [busy, setBusy] = useState(false);
  const saving = files?.state === "saving";
  const load = useCallback(() => {
    if (!session) return;
    get<Files>(`/sessions/${session}/files`)
      .then(setFiles)
      .catch(() => {}); // the next move asks again
  }, [session]);
  useEffect(load, [load, moved]);
  useEffect(() => {
    const timer = setInterval(load, saving ? 1000 : 15_000);
    return () => clearInterval(timer);
  }, [load, saving]);
  const save = () => {
    setBusy(true);
    void tried(post<Files>(`/sessions/${session}/files/save`).then(setFiles)).finally(() => setBusy(false));
  };
  return { files, busy: busy || saving, save };
}

/** Saved says in one line whether the files are safe, and why not. */
export function Saved() {
  const { files, busy, save } = useFiles();
  const now = useNow(files?.state === "saved");
  if (files?.waits_for && files.state !== "unsaved")
    return (
      <Notice tone="bad" title={t("files.waits")}>
        <p className="wrap-anywhere">{translatedLine(files.waits_for)}</p>
      </Notice>
    );
  if (!files || files.state === "none") return null;
  const again = (
    <Button look={files.state === "unsaved" ? "plain" : "quiet"} className="shrink-0" disabled={busy} onClick={save}>
      {t(busy ? "files.saving" : "files.save")}
    </Button>
  );
  if (files.state === "unsaved")
    return (
      <Notice tone="bad" title={t("files.unsaved")}>
        <p className="wrap-anywhere">{files.error && translatedLine(files.error)}</p>
        {files.saved_at && <p className="mt-1">{t("files.last", { time: moment(files.saved_at) })}</p>}
        <div className="mt-2">{again}</div>
      </Notice>
    );
  return (
    <div className="flex min-h-7 items-center justify-between gap-2 text-muted" title={files.saved_at && moment(files.saved_at)}>
      <span>{files.saved_at ? t("files.saved", { time: span(Math.max(1000, now - Date.parse(files.saved_at))) }) : t("files.never")}</span>
      {again}
    </div>
  );
}
