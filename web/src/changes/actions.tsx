import { type ReactNode, useState } from "react";
import { post, type Problem } from "../api/http";
import type { Applied, Changes, Merged, PullRequest, Pulled, Pushed, Undone } from "../api/types";
import { useSide } from "../chat/context";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { Button, Notice } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { Spinner } from "../ui/icons";
import { plainPath } from "./patch";

type Act = "apply" | "pull" | "merge" | "push" | "pr" | "undo";

/** Done is what is said when thole has answered. */
interface Done {
  act: Act;
  tone: "ok" | "warn" | "bad";
  title: string;
  lines?: ReactNode[];
}

const list = (conflicts: { path: string; why: string }[]): ReactNode[] =>
  conflicts.map((it) => (
    <>
      <span className="font-mono">{plainPath(it.path)}</span>: {it.why}
    </>
  ));

/** Actions bring changes out, or take a run's back. What writes is asked for twice. */
export function Actions({ view, session, onDone }: { view: Changes; session: string; onDone: () => void }) {
  const busyRun = useSide((side) => side.session?.active_run_id !== undefined);
  const [asking, setAsking] = useState<Act>();
  const [checked, setChecked] = useState<Applied>();
  const [busy, setBusy] = useState<Act>();
  const [done, setDone] = useState<Done>();
  const undone = view.turn || view.turns.findLast((it) => it.changed)?.number;
  const at = `/sessions/${session}/changes`;

  const run = async (act: Act, what: () => Promise<Done | undefined>) => {
    setBusy(act);
    setAsking(undefined);
    setDone(undefined);
    try {
      setDone(await what());
    } catch (error) {
      const { message, hint } = error as Problem;
      setDone({ act, tone: "bad", title: message, lines: hint ? [hint] : undefined });
    } finally {
      setBusy(undefined);
      onDone();
    }
  };

  const applied = (it: Applied): Done => {
    if (it.conflicts.length > 0) return { act: "apply", tone: "warn", title: t("changes.conflicts", { dir: it.dir }), lines: list(it.conflicts) };
    return { act: "apply", tone: "ok", title: t("changes.applied", { n: it.total, dir: it.dir }), lines: it.notes };
  };
  const acts: Record<Act, () => Promise<Done | undefined>> = {
    apply: async () => applied(await post<Applied>(`${at}/apply`, {})),
    pull: async () => {
      const it = await post<Pulled>(`${at}/pull`, {});
      return { act: "pull", tone: "ok", title: t("changes.pulled", { branch: it.branch, repo: it.repo }), lines: it.notes };
    },
    merge: async () => {
      const it = await post<Merged>(`${at}/merge`, {});
      if (!it.done) return { act: "merge", tone: "warn", title: t("changes.conflicts", { dir: it.repo }), lines: [...list(it.conflicts), ...(it.notes ?? [])] };
      return { act: "merge", tone: "ok", title: t("changes.merged", { branch: it.branch, into: it.into }), lines: it.notes };
    },
    push: async () => {
      const it = await post<Pushed>(`${at}/push`, {});
      return { act: "push", tone: "ok", title: t("changes.pushed", { branch: it.branch, remote: it.remote }), lines: it.notes };
    },
    pr: async () => undefined, // by its form
    undo: async () => {
      await post<Undone>(`${at}/undo`, { turn: undone });
      return { act: "undo", tone: "ok", title: t("changes.undone", { n: undone ?? 0 }) };
    },
  };
  const ask = (act: Act) => {
    if (act !== "apply") return setAsking(act);
    // What would happen is looked at first; nothing is written by that.
    void run("apply", async () => {
      const it = await post<Applied>(`${at}/apply`, { check: true });
      if (it.conflicts.length > 0) return applied(it);
      if (it.total === 0) return { act, tone: "ok", title: t("changes.nothing", { dir: it.dir }), lines: it.notes };
      setChecked(it);
      setAsking("apply");
      return undefined;
    });
  };

  // All of a chat's changes go out together; a run's alone are only looked at, or taken back.
  const out: Act[] =
    view.turn || view.total === 0
      ? []
      : [...(view.repo && !view.in_place ? (["apply", "pull", "merge"] as const) : []), ...(view.branch && !view.in_place ? (["push", "pr"] as const) : [])];
  const offered: Act[] = [...out, ...(undone ? (["undo"] as const) : [])];
  const confirm = asking && asking !== "pr";
  return (
    <>
      {offered.length > 0 && (
        <div role="group" aria-label={t("changes.actions")} className="flex flex-wrap gap-1.5">
          {offered.map((act) => (
            <Button
              key={act}
              look={act === "apply" ? "primary" : act === "undo" ? "danger" : "plain"}
              className="px-2.5"
              disabled={busy !== undefined || (act === "undo" && busyRun)}
              onClick={() => ask(act)}
            >
              {busy === act && <Spinner className="size-3.5" />}
              {t(`changes.do.${act}` as Key, { n: undone ?? 0 })}
            </Button>
          ))}
        </div>
      )}
      <div role="status">
        {done && (
          <Notice tone={done.tone} title={done.title}>
            {done.lines && done.lines.length > 0 && (
              <ul>
                {done.lines.map((line, n) => (
                  <li key={n}>{line}</li>
                ))}
              </ul>
            )}
          </Notice>
        )}
      </div>
      <Confirm open={!!confirm} label={t("changes.sure")} onClose={() => setAsking(undefined)}>
        {confirm && (
          <div className="space-y-3 text-[13px]">
            <h2 className="text-[15px] font-semibold">{t(`changes.do.${asking}` as Key, { n: undone ?? 0 })}</h2>
            <p className="text-muted wrap-anywhere">
              {t(`changes.ask.${asking}` as Key, {
                n: asking === "apply" ? (checked?.total ?? 0) : (undone ?? 0),
                dir: checked?.dir ?? "",
                repo: view.repo ?? "",
                branch: view.branch ?? "",
              })}
            </p>
            {asking === "apply" && checked && (
              <ul className="max-h-40 overflow-y-auto font-mono text-[12px]">
                {checked.files.map((it) => (
                  <li key={it.path_bytes ?? it.path}>{plainPath(it.path)}</li>
                ))}
              </ul>
            )}
            <div className="flex justify-end gap-2">
              <Button onClick={() => setAsking(undefined)}>{t("common.cancel")}</Button>
              <Button look={asking === "undo" ? "danger" : "primary"} onClick={() => void run(asking, acts[asking])}>
                {t(`changes.yes.${asking}` as Key)}
              </Button>
            </div>
          </div>
        )}
      </Confirm>
      <Confirm open={asking === "pr"} label={t("changes.do.pr")} onClose={() => setAsking(undefined)}>
        <Request
          branch={view.branch ?? ""}
          onClose={() => setAsking(undefined)}
          onOpen={(body) =>
            void run("pr", async () => {
              const it = await post<PullRequest>(`${at}/pr`, body);
              const safe = /^https?:\/\//.test(it.url);
              const link = safe ? (
                <a href={it.url} target="_blank" rel="noreferrer" className="underline">
                  {it.url}
                </a>
              ) : (
                it.url
              );
              return { act: "pr", tone: "ok", title: t(it.existing ? "changes.prThere" : "changes.prOpened", { n: it.number, base: it.base }), lines: [link] };
            })
          }
        />
      </Confirm>
    </>
  );
}

/** Request is the form of a pull request; what is left empty is made from the chat. */
function Request({
  branch,
  onOpen,
  onClose,
}: {
  branch: string;
  onOpen: (body: { title?: string; base?: string; draft?: boolean }) => void;
  onClose: () => void;
}) {
  const [title, setTitle] = useState("");
  const [base, setBase] = useState("");
  const [draft, setDraft] = useState(false);
  const field = "mt-1 block w-full min-w-0 rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] text-ink hover:border-line-strong";
  return (
    <form
      className="space-y-3 text-[13px]"
      onSubmit={(event) => {
        event.preventDefault();
        onOpen({ title: title.trim() || undefined, base: base.trim() || undefined, draft: draft || undefined });
      }}
    >
      <h2 className="text-[15px] font-semibold">{t("changes.do.pr")}</h2>
      <p className="text-muted wrap-anywhere">{t("changes.ask.pr", { branch })}</p>
      <label className="block text-muted">
        {t("changes.prTitle")}
        <input value={title} maxLength={250} className={field} onChange={(event) => setTitle(event.target.value)} />
      </label>
      <label className="block text-muted">
        {t("changes.prBase")}
        <input value={base} maxLength={244} spellCheck={false} className={`${field} font-mono`} onChange={(event) => setBase(event.target.value)} />
      </label>
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={draft} className="accent-accent" onChange={(event) => setDraft(event.target.checked)} />
        {t("changes.prDraft")}
      </label>
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" look="primary">
          {t("changes.yes.pr")}
        </Button>
      </div>
    </form>
  );
}
