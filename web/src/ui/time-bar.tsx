import type { RunTime } from "../api/types";
import { t } from "../i18n";
import { span } from "./time";

const parts = [
  { name: "model", ms: (it: RunTime) => it.model_ms, fill: "bg-accent" },
  { name: "tools", ms: (it: RunTime) => it.tools_ms, fill: "bg-ok" },
  { name: "human", ms: (it: RunTime) => it.human_ms, fill: "bg-warn" },
  { name: "overhead", ms: (it: RunTime) => it.overhead_ms, fill: "bg-line-strong" },
] as const;

const whole = (time: RunTime): number => parts.reduce((sum, part) => sum + part.ms(time), 0);

const words = (time: RunTime): string => parts.map((part) => t(`time.${part.name}`, { time: span(part.ms(time)) })).join(", ");

/** TimeBar shows what a run's time was spent on: a bar for the eye, the same in words for everybody else. */
export function TimeBar({ time, className = "" }: { time: RunTime; className?: string }) {
  if (whole(time) === 0) return null;
  return (
    <span role="img" aria-label={words(time)} title={words(time)} className={`inline-flex h-1.5 overflow-hidden rounded-full bg-raised ${className}`}>
      {parts.map((part) => (
        <span key={part.name} className={part.fill} style={{ width: `${(part.ms(time) / whole(time)) * 100}%` }} />
      ))}
    </span>
  );
}

/** TimeParts is the bar with a line for each part. */
export function TimeParts({ time }: { time: RunTime }) {
  return (
    <>
      <TimeBar time={time} className="w-full" />
      <ul className="mt-2 space-y-1 text-[12.5px]">
        {parts.map((part) => (
          <li key={part.name} className="flex items-center gap-2">
            <span className={`size-2 shrink-0 rounded-full ${part.fill}`} />
            <span className="flex-1 text-muted">{t(`time.${part.name}.about`)}</span>
            <span className="tabular-nums">{span(part.ms(time))}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
