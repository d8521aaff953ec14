import { useCallback, useEffect, useState } from "react";
import { get, post, query } from "../api/http";
import type { Batch, Batches, Job, Jobs } from "../api/types";
import { useSide } from "../chat/context";
import { listen } from "../events/client";
import { maybe, t, type Key } from "../i18n";
import "../i18n/later";
import { Badge, Button, CommandLine, type Tone } from "../ui/controls";
import { ChevronIcon, JobIcon, WarnIcon } from "../ui/icons";
import { ago, clock, Elapsed } from "../ui/time";
import { tried } from "../ui/toast";

export interface JobList {
  jobs: Job[];
  batches: Batch[];
  held: number;
  reload: () => void;
}

const isHeld = (batch: Batch): boolean => batch.replay_policy === "manual_resolution_only" && batch.state !== "closed";

/** useJobs reads the jobs and batches of the session again whenever the server says that some changed. */
export function useJobs(): JobList {
  const session = useSide((side) => side.session?.id);
  const [list, setList] = useState<{ jobs: Job[]; batches: Batch[] }>({ jobs: [], batches: [] });
  const reload = useCallback(() => {
    if (!session) return setList({ jobs: [], batches: [] });
    Promise.all([get<Jobs>(`/sessions/${session}/jobs`), get<Batches>(`/batches${query({ session_id: session })}`)])
      .then(([jobs, batches]) => setList({ jobs: jobs.items, batches: batches.items }))
      .catch(() => {}); // the next change asks again
  }, [session]);
  useEffect(() => {
    reload();
    return listen({ ready: reload, event: (event) => event.type === "jobs.changed" && reload() });
  }, [reload]);
  return { ...list, held: list.batches.filter(isHeld).length, reload };
}

export function Jobs({ jobs: { jobs, batches, reload } }: { jobs: JobList }) {
  const session = useSide((side) => side.session?.id);
  const held = batches.filter(isHeld);
  if (jobs.length === 0 && batches.length === 0)
    return (
      <div className="space-y-3 text-[13px] text-muted">
        <p>{t("jobs.none")}</p>
        {session && (
          <>
            <p>{t("jobs.hint")}</p>
            <CommandLine text={`thole job run --thread-id ${session} -- make test`} />
          </>
        )}
      </div>
    );
  return (
    <div className="space-y-5">
      {held.map((batch) => (
        <Held key={batch.batch_id} batch={batch} onDone={reload} />
      ))}
      <ul className="space-y-2">
        {jobs.map((job) => (
          <Entry key={job.job_id} job={job} batch={batches.find((batch) => batch.batch_id === job.batch_id)} onDone={reload} />
        ))}
      </ul>
    </div>
  );
}

/** What a result is held for before anything of it was sent. */
const never = new Set(["policy", "no_thread", "other_home", "unfit_thread", "no_channel"]);

function Held({ batch, onDone }: { batch: Batch; onDone: () => void }) {
  const close = async (reason: string) => {
    await tried(post(`/batches/${batch.batch_id}/close`, { reason }));
    onDone();
  };
  const unsent = never.has(batch.held_for ?? "");
  const deliver = async () => {
    await tried(post(`/batches/${batch.batch_id}/deliver`, { anyway: !unsent }));
    onDone();
  };
  return (
    <section aria-label={t("jobs.held")} className="rounded-xl border border-warn/45 text-[13px]">
      <h3 className="flex items-center gap-2 rounded-t-xl bg-warn-soft px-3 py-2 font-semibold text-warn">
        <WarnIcon /> {t("jobs.held")}
      </h3>
      <div className="space-y-2.5 px-3 py-2.5">
        <p className="font-medium wrap-anywhere">{batch.summary}</p>
        <p className="text-muted">{t(unsent ? "jobs.heldPolicy" : "jobs.heldText")}</p>
        {batch.held_for && batch.held_for !== "policy" && <p className="text-[12px] text-faint wrap-anywhere">{maybe("held", batch.held_for)}</p>}
        {!batch.head && <p className="text-muted">{t("jobs.notHead")}</p>}
        {batch.head && (
          <div className="space-y-2">
            <Operator text={t("jobs.arrived")} about={t("jobs.arrivedText")} onPick={() => void close("operator_confirmed_delivery")} />
            <Operator
              text={t(unsent ? "jobs.deliverHeld" : "jobs.deliver")}
              about={t(unsent ? "jobs.deliverHeldText" : "jobs.deliverText")}
              onPick={() => void deliver()}
            />
            <Operator text={t("jobs.drop")} about={t("jobs.dropText")} onPick={() => void close("operator_closed_unconfirmed")} />
          </div>
        )}
        <Story batch={batch} />
      </div>
    </section>
  );
}

function Operator({ text, about, onPick }: { text: string; about: string; onPick: () => void }) {
  return (
    <button type="button" onClick={onPick} className="w-full rounded-lg border border-line-strong px-3 py-1.5 text-left hover:bg-hover">
      <span className="block font-medium">{text}</span>
      <span className="block text-[12px] text-muted">{about}</span>
    </button>
  );
}

const tones: Record<string, Tone> = { running: "accent", ready: "ok", failed: "bad", cancelled: "neutral" };

function stateOf(batch: Batch): string {
  if (isHeld(batch)) return t("jobs.held");
  return batch.state === "closed" ? maybe("batch", batch.close_reason ?? "closed") : maybe("batch", batch.state);
}

function Entry({ job, batch, onDone }: { job: Job; batch?: Batch; onDone: () => void }) {
  const running = job.status === "running";
  return (
    <li className="rounded-xl border border-line px-3 py-2 text-[13px]">
      <div className="flex items-start gap-2">
        <JobIcon className="mt-0.5 size-4 text-faint" />
        <span className="min-w-0 flex-1 font-medium wrap-anywhere">{job.task_summary || job.task_kind}</span>
        <Badge tone={tones[job.status] ?? "neutral"}>{job.waits_for_children ? t("jobs.children") : t(`jobs.${job.status}` as Key)}</Badge>
      </div>
      <p className="ml-6 text-[12px] text-faint">
        {running ? <Elapsed from={job.created_at} /> : ago(job.completed_at ?? job.created_at)}
        {job.exit_code !== undefined && ` · ${t("part.exit", { code: job.exit_code })}`}
        {batch && ` · ${stateOf(batch)}`}
      </p>
      {job.result_summary && <p className="ml-6 mt-1 line-clamp-4 whitespace-pre-wrap text-[12.5px] text-muted wrap-anywhere">{job.result_summary}</p>}
      {running && (
        <Button look="quiet" className="ml-3 mt-1" onClick={() => void tried(post(`/jobs/${job.job_id}/cancel`)).then(onDone)}>
          {t("jobs.cancel")}
        </Button>
      )}
      {batch && (
        <div className="ml-6 mt-1">
          <Story batch={batch} />
        </div>
      )}
    </li>
  );
}

/** Story shows which proof moved a batch; it is read on demand. */
function Story({ batch }: { batch: Batch }) {
  const [open, setOpen] = useState(false);
  const [whole, setWhole] = useState<Batch>();
  useEffect(() => {
    if (open) void tried(get<Batch>(`/batches/${batch.batch_id}`)).then(setWhole);
  }, [open, batch]);
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-7 items-center gap-1 rounded-md text-[12.5px] text-muted hover:text-ink"
      >
        <ChevronIcon className={`size-3 transition-transform ${open ? "rotate-90" : ""}`} />
        {t("jobs.story")}
        <span className="text-faint">· {t("jobs.attempts", { n: batch.delivery_attempt_count, max: batch.max_delivery_attempts })}</span>
      </button>
      {open && whole?.ledger && (
        <ol className="mt-1 space-y-1.5 border-l border-line pl-3 text-[12px]">
          {whole.ledger.map((row, index) => (
            <li key={index}>
              <span className="flex flex-wrap gap-x-2">
                <time className="tabular-nums text-faint" dateTime={row.at}>
                  {clock(row.at)}
                </time>
                <span className="font-medium">{row.event.replaceAll(/[._]/g, " ")}</span>
                {row.to && <span className="text-muted">{row.from ? `${row.from} → ${row.to}` : row.to}</span>}
              </span>
              {row.proof && Object.keys(row.proof).length > 0 && (
                <span className="block font-mono text-[11px] text-faint wrap-anywhere">
                  {Object.entries(row.proof)
                    .map(([name, value]) => `${name}=${value}`)
                    .join(" ")}
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
