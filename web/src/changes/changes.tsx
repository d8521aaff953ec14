import { useCallback, useEffect, useState } from "react";
import { download, get, type Problem, query } from "../api/http";
import type { Changes as View } from "../api/types";
import { composerBox } from "../chat/composer-box";
import { useSide } from "../chat/context";
import { listen } from "../events/client";
import { t } from "../i18n";
import "../i18n/later";
import { prefs, setPrefs } from "../state/prefs";
import { useStore } from "../state/store";
import { Button, Choice, Notice } from "../ui/controls";
import { Spinner } from "../ui/icons";
import { tried } from "../ui/toast";
import { Actions } from "./actions";
import { commentsOf } from "./comments";
import { FileView } from "./file";
import { messageOf } from "./patch";

interface Loaded {
  view?: View;
  problem?: Problem;
  /** What view and problem are about. */
  of: string;
}

/** useChanges reads the changes again whenever a run moves, and when the line to thole comes back. */
function useChanges(session: string | undefined, turn: number): Loaded & { reload: () => void; busy: boolean } {
  const moved = useSide((side) => `${side.run?.id} ${side.run?.outcome} ${side.run?.phase} ${side.phases.length}`);
  const [loaded, setLoaded] = useState<Loaded>({ of: "" });
  const [busy, setBusy] = useState(false);
  const [again, setAgain] = useState(0);
  const reload = useCallback(() => setAgain((n) => n + 1), []);
  useEffect(() => listen({ ready: reload, event: () => {} }), [reload]);
  useEffect(() => {
    if (!session) return setLoaded({ of: "" });
    const stop = new AbortController();
    const of = `${session} ${turn}`;
    setBusy(true);
    get<View>(`/sessions/${session}/changes${query({ turn: turn || undefined, patches: true })}`, stop.signal)
      .then(
        (view) => setLoaded({ view, of }),
        (error: unknown) => {
          if (stop.signal.aborted) return;
          // What was seen before stays, with the reason why nothing newer is there.
          setLoaded((old) => ({ view: old.of === of ? old.view : undefined, problem: error as Problem, of }));
        },
      )
      .finally(() => !stop.signal.aborted && setBusy(false));
    return () => stop.abort();
  }, [session, turn, moved, again]);
  const fresh = loaded.of === `${session} ${turn}`;
  return { ...(fresh ? loaded : { of: "" }), reload, busy };
}

/** Changes shows how a chat's files changed, takes comments on lines, and brings the changes out. */
export default function Changes({ onLeave }: { onLeave?: () => void }) {
  const session = useSide((side) => side.session?.id);
  const [turn, setTurn] = useState(0);
  const { view, problem, reload, busy } = useChanges(session, turn);
  if (!session) return <p className="text-[13px] text-muted">{t("changes.none")}</p>;
  return (
    <div className="space-y-3 text-[13px]">
      <Bar view={view} busy={busy} turn={turn} onTurn={setTurn} session={session} />
      {problem && (
        <Notice tone="bad" title={problem.message} action={<Button onClick={reload}>{t("app.again")}</Button>}>
          {problem.hint}
        </Notice>
      )}
      {!view && !problem && (
        <p className="flex items-center gap-2 text-muted">
          <Spinner /> {t("app.loading")}
        </p>
      )}
      {view && <Whole view={view} session={session} onLeave={onLeave} onDone={reload} />}
    </div>
  );
}

function Bar({ view, busy, turn, onTurn, session }: { view?: View; busy: boolean; turn: number; onTurn: (turn: number) => void; session: string }) {
  const split = useStore(prefs, (it) => it.split === true);
  const turns = (view?.turns ?? []).filter((it) => it.changed || it.number === turn);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Choice
        label={t("changes.which")}
        value={String(turn)}
        onChange={(next) => onTurn(Number(next))}
        options={[{ value: "0", text: t("changes.all") }, ...turns.map((it) => ({ value: String(it.number), text: t("changes.run", { n: it.number }) }))]}
      />
      {view && (
        <span className="tabular-nums">
          {t(view.total === 1 ? "changes.file" : "changes.files", { n: view.total })} <Counts added={view.added} removed={view.removed} />
        </span>
      )}
      {busy && <Spinner className="size-3.5 text-faint" />}
      <span className="flex-1" />
      <Button look="quiet" className="px-2" aria-pressed={split} onClick={() => setPrefs({ split: !split })}>
        {t(split ? "changes.inline" : "changes.split")}
      </Button>
      {view && view.total > 0 && (
        <Button look="quiet" className="px-2" onClick={() => void tried(download(`/sessions/${session}/changes/patch${query({ turn: turn || undefined })}`))}>
          {t("changes.download")}
        </Button>
      )}
    </div>
  );
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="shrink-0 font-mono text-[11.5px]">
      <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
    </span>
  );
}

function Whole({ view, session, onLeave, onDone }: { view: View; session: string; onLeave?: () => void; onDone: () => void }) {
  return (
    <>
      {view.in_place && <p className="text-muted">{t("changes.inPlace")}</p>}
      {view.files.length === 0 && <p className="text-muted">{t(view.turn ? "changes.noneInRun" : "changes.none")}</p>}
      <Actions view={view} session={session} onDone={onDone} />
      <ToMessage session={session} onLeave={onLeave} />
      <div className="space-y-3">
        {view.files.map((file) => (
          <FileView key={`${view.turn} ${file.path_bytes ?? file.path}`} file={file} session={session} turn={view.turn ?? 0} state={view.to} />
        ))}
      </div>
      {view.total > view.files.length && <p className="text-muted">{t("changes.more", { n: view.total - view.files.length })}</p>}
      {view.left_out && view.left_out.length > 0 && (
        <Notice tone="warn" title={t("changes.leftOut")}>
          <ul>
            {view.left_out.map((it) => (
              <li key={it}>{it}</li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  );
}

/** ToMessage puts all comments into the message field as one message, which is sent like any other. */
function ToMessage({ session, onLeave }: { session: string; onLeave?: () => void }) {
  const store = commentsOf(session);
  const written = useStore(store).filter((it) => it.text.trim());
  if (written.length === 0) return null;
  return (
    <div className="sticky top-0 z-10 flex items-center gap-2 rounded-lg bg-accent-soft px-3 py-1.5 text-accent">
      <span className="flex-1">{t(written.length === 1 ? "changes.comment1" : "changes.comments", { n: written.length })}</span>
      <Button
        look="primary"
        onClick={() => {
          onLeave?.();
          composerBox.current?.fill(messageOf(written, t("changes.removed")));
          store.set([]);
        }}
      >
        {t("changes.toMessage")}
      </Button>
    </div>
  );
}
