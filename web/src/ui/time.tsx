import { useEffect, useState } from "react";
import { t } from "../i18n";
import { prefs } from "../state/prefs";

const locale = () => (prefs.get().language === "zh" ? "zh-CN" : "en");

/** span is a duration for people: 300 ms, 4s, 2m 05s, 1h 20m. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, "0")}s`;
  return `${Math.floor(s / 3600)}h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
}

export const clock = (iso: string): string => new Date(iso).toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const moment = (iso: string): string => new Date(iso).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });

export function ago(iso: string, now = Date.now()): string {
  const s = (now - Date.parse(iso)) / 1000;
  if (s < 45) return t("time.now");
  const format = new Intl.RelativeTimeFormat(locale(), { style: "narrow", numeric: "auto" });
  if (s < 3600) return format.format(-Math.max(1, Math.round(s / 60)), "minute");
  if (s < 86400) return format.format(-Math.round(s / 3600), "hour");
  return format.format(-Math.round(s / 86400), "day");
}

export const count = (n: number): string =>
  new Intl.NumberFormat(locale(), { notation: n >= 10000 ? "compact" : "standard", maximumFractionDigits: 1 }).format(n);

/** useNow ticks every second while something on the page is counting. */
export function useNow(running: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}

/** Elapsed counts from start to end, or to now. */
export function Elapsed({ from, to }: { from: string; to?: string }) {
  const now = useNow(!to);
  const start = Date.parse(from);
  // What still counts counts in whole seconds.
  return <span className="tabular-nums">{to ? span(Date.parse(to) - start) : span(Math.max(1000, now - start))}</span>;
}
