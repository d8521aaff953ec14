import type { ReactNode } from "react";
import type { Usage } from "../api/types";
import { useSide } from "../chat/context";
import { maybe, t } from "../i18n";
import { translated } from "../i18n/phrases";
import "../i18n/later";
import { endPhase } from "../state/fold";
import { useRunTime } from "../state/times";
import { Badge, CopyButton, Notice, type Tone } from "../ui/controls";
import { clock, count, Elapsed } from "../ui/time";
import { TimeParts } from "../ui/time-bar";
import { Saved } from "./files";
import { NetworkReach, OpenPorts } from "./network";

const tone = (phase: string): Tone =>
  phase === "succeeded" ? "ok" : phase === "failed" ? "bad" : phase === "waiting_human" ? "warn" : phase === "canceled" ? "neutral" : "accent";

/** heldBy is what the model's context holds: what its last call was given and gave. The sum of all calls says nothing about it. */
export function heldBy({ last }: Usage): number | undefined {
  return last && last.input + (last.cache_read ?? 0) + (last.cache_write ?? 0) + last.output + (last.reasoning ?? 0);
}

/** Agent shows what is happening to the current run, or what happened to the last one. */
export function Agent() {
  const run = useSide((side) => side.run);
  const phases = useSide((side) => side.phases);
  const session = useSide((side) => side.session);
  const failed = useSide((side) => side.lastError);
  const lastError = failed && translated(failed);
  const time = useRunTime(run?.id ?? "", run?.time);
  if (!run) return <p className="text-[13px] text-muted">{t("agent.none")}</p>;
  const usage = run.usage;
  const phase = run.outcome ? endPhase[run.outcome] : (phases.at(-1)?.phase ?? run.phase);
  const window = usage.context_window ?? 0;
  const used = heldBy(usage);
  return (
    <div className="space-y-5 text-[13px]">
      <div className="flex items-center justify-between gap-2">
        <Badge tone={tone(phase)} className="px-2 py-0.5 text-[13px]">
          {!run.outcome && <span className="pulse size-1.5 rounded-full bg-current" />}
          {maybe("phase", phase)}
        </Badge>
        <span className="text-muted">
          <span className="sr-only">{t("agent.elapsed")} </span>
          <Elapsed from={run.created_at} to={run.ended_at} />
        </span>
      </div>
      {lastError && (
        <Notice tone={run.outcome === "completed" ? "warn" : "bad"} title={t("agent.lastError")}>
          <p>{lastError.message}</p>
          {lastError.hint && <p className="mt-1">{lastError.hint}</p>}
        </Notice>
      )}
      <Saved />
      <dl className="space-y-1.5">
        <Fact name={t("provider.label")}>{[run.provider, run.model].filter(Boolean).join(" · ") || "–"}</Fact>
        <Fact name={t("agent.run")} copy={run.id} />
        <Fact name={t("agent.executor")} copy={run.executor_id} />
        {run.trace_id && <Fact name={t("agent.trace")} copy={run.trace_id} />}
        {session && <Fact name={t("agent.session")} copy={session.id} />}
        {session?.dir && <Fact name={t("agent.dir")} copy={session.dir} />}
        {!lastError && <Fact name={t("agent.lastError")}>{t("agent.noError")}</Fact>}
      </dl>
      <section>
        <h3 className="mb-1.5 text-[11.5px] font-medium text-faint">{t("agent.usage")}</h3>
        <dl className="grid grid-cols-3 gap-2">
          <Number name={t("agent.in")} value={count(usage.input)} />
          <Number name={t("agent.out")} value={count(usage.output)} />
          <Number name={t("agent.cached")} value={count(usage.cache_read ?? 0)} />
        </dl>
        {window > 0 && used !== undefined && (
          <div className="mt-2.5">
            <div className="mb-1 flex justify-between text-[12px] text-muted">
              <span>{t("agent.context")}</span>
              <span className="tabular-nums">
                {count(used)} / {count(window)}
              </span>
            </div>
            <div className="h-1.5 overflow-hidden rounded-full bg-raised">
              <div className="h-full rounded-full bg-accent" style={{ width: `${Math.min(100, (used / window) * 100)}%` }} />
            </div>
          </div>
        )}
        {usage.cost_micros !== undefined && (
          <p className="mt-2 text-[12px] text-muted">
            {t("agent.cost")}: ${(usage.cost_micros / 1e6).toFixed(4)}
          </p>
        )}
      </section>
      {time && (
        <section>
          <h3 className="mb-1.5 text-[11.5px] font-medium text-faint">{t("agent.time")}</h3>
          <TimeParts time={time} />
        </section>
      )}
      <NetworkReach />
      <OpenPorts />
      <section>
        <h3 className="mb-1.5 text-[11.5px] font-medium text-faint">{t("agent.timeline")}</h3>
        <ol className="space-y-0">
          {phases.map((mark, index) => {
            const next = phases[index + 1];
            const last = !next;
            const over = ["succeeded", "failed", "canceled"].includes(mark.phase);
            return (
              <li key={index} className="relative flex gap-2.5 pb-2.5 pl-4 last:pb-0">
                {!last && <span className="absolute bottom-0 left-[3px] top-2.5 w-px bg-line" />}
                <span className={`absolute left-0 top-[7px] size-[7px] rounded-full ${last && !over ? "pulse bg-accent" : "bg-line-strong"}`} />
                <span className={`flex-1 ${last ? "font-medium" : "text-muted"}`}>{maybe("phase", mark.phase)}</span>
                <span className="text-[12px] text-faint">
                  {next ? <Elapsed from={mark.at} to={next.at} /> : over ? clock(mark.at) : <Elapsed from={mark.at} />}
                </span>
              </li>
            );
          })}
        </ol>
      </section>
    </div>
  );
}

function Fact({ name, copy, children }: { name: string; copy?: string; children?: ReactNode }) {
  return (
    <div className="flex min-h-7 items-center gap-2">
      <dt className="w-20 shrink-0 text-muted">{name}</dt>
      <dd className={`flex min-w-0 flex-1 items-center ${children ? "" : "font-mono text-[12px]"}`}>
        <span className="min-w-0 flex-1 truncate" title={copy}>
          {children ?? copy ?? "–"}
        </span>
        {copy && <CopyButton text={copy} />}
      </dd>
    </div>
  );
}

function Number({ name, value }: { name: string; value: string }) {
  return (
    <div className="rounded-lg bg-raised px-2.5 py-1.5">
      <dt className="text-[11.5px] text-muted">{name}</dt>
      <dd className="font-medium tabular-nums">{value}</dd>
    </div>
  );
}
