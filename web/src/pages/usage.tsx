import { type ReactNode, useState } from "react";
import { download, query } from "../api/http";
import type { UsageGroup, UsageSums } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { type Bar, Columns, Share } from "../ui/bars";
import { Button, Choice } from "../ui/controls";
import { money } from "../ui/money";
import { count } from "../ui/time";
import { tried } from "../ui/toast";
import { Budgets } from "./budgets";
import { ChatName } from "./chat-name";
import { Failed, Page, Section, useLoad } from "./page";

const ranges = ["7", "30", "90"] as const;
const day = 86_400_000;

/** useFilter is a choice that the address keeps, so that it survives a reload and can be sent as a link. */
function useFilter<T extends string>(name: string, values: readonly T[], start: T): [T, (value: string) => void] {
  const given = new URLSearchParams(location.search).get(name) as T | null;
  const [value, setValue] = useState<T>(given && values.includes(given) ? given : start);
  const set = (next: string) => {
    const search = new URLSearchParams(location.search);
    search.set(name, next);
    history.replaceState(null, "", `${location.pathname}?${search}`);
    setValue(next as T);
  };
  return [value, set];
}

const tokensOf = (it: UsageGroup): number => it.input + it.output + it.reasoning + it.cache_read + it.cache_write;

/** daysOf has a bar for each day of the range, also for those on which nothing ran. */
export function daysOf(groups: UsageGroup[], from: number, days: number, measure: (it: UsageGroup) => number, text: (n: number) => string): Bar[] {
  const known = new Map(groups.map((it) => [it.key, measure(it)]));
  return Array.from({ length: days }, (_, index) => {
    const name = new Date(from + index * day).toISOString().slice(0, 10);
    const value = known.get(name) ?? 0;
    return { key: name, name, value, text: text(value) };
  });
}

/** Usage shows what the user's runs used: in money where prices are known, in tokens always. */
export default function Usage() {
  const [range, setRange] = useFilter("days", ranges, "30");
  const [measure, setMeasure] = useFilter("measure", ["cost", "tokens"] as const, "cost");
  const days = Number(range);
  // Days are those of the server's sums: UTC.
  const from = Math.floor(Date.now() / day) * day - (days - 1) * day;
  const since = new Date(from).toISOString();
  const byDay = useLoad<UsageSums>(`/usage${query({ group: "day", from: since })}`);
  const byModel = useLoad<UsageSums>(`/usage${query({ group: "model", from: since })}`);
  const byChat = useLoad<UsageSums>(`/usage${query({ group: "session", from: since })}`);
  const problem = byDay.problem ?? byModel.problem ?? byChat.problem;
  const total = byDay.value?.total;
  const of = measure === "cost" ? (it: UsageGroup) => it.cost_micros : tokensOf;
  const text = measure === "cost" ? money : count;
  const bars = daysOf(byDay.value?.groups ?? [], from, days, of, text);
  return (
    <Page
      title={t("usage.title")}
      about={t("usage.about")}
      action={
        <div className="flex flex-wrap items-center gap-2">
          <Choice label={t("usage.range")} value={range} onChange={setRange} options={ranges.map((it) => ({ value: it, text: t("usage.days", { n: it }) }))} />
          <Choice
            label={t("usage.measure")}
            value={measure}
            onChange={setMeasure}
            options={(["cost", "tokens"] as const).map((it) => ({ value: it, text: t(`usage.${it}`) }))}
          />
          <Button onClick={() => void tried(download(`/usage/csv${query({ group: "day", from: since })}`))}>{t("usage.csv")}</Button>
        </div>
      }
    >
      {problem && <Failed problem={problem} reload={() => [byDay, byModel, byChat].forEach((it) => it.reload())} />}
      {total && (
        <dl className="mb-8 grid grid-cols-2 gap-2 sm:grid-cols-4">
          <Figure name={t("usage.runs")} value={count(total.runs)} />
          <Figure name={t("usage.in")} value={count(total.input + total.cache_read + total.cache_write)} />
          <Figure name={t("usage.out")} value={count(total.output + total.reasoning)} />
          <Figure
            name={t("usage.cost")}
            value={money(total.cost_micros)}
            note={total.unpriced_runs > 0 ? t("usage.unpriced", { n: total.unpriced_runs }) : undefined}
          />
        </dl>
      )}
      <Budgets />
      {byDay.value && (
        <Section title={t("usage.byDay")}>
          <Columns bars={bars} />
          <div className="flex justify-between text-[11.5px] text-faint" aria-hidden="true">
            <span>{bars[0]?.name}</span>
            <span>{bars.at(-1)?.name}</span>
          </div>
          <details className="mt-2 text-[12.5px]">
            <summary className="inline-block rounded text-muted underline underline-offset-2 hover:text-ink">{t("usage.table")}</summary>
            <Table head={t("usage.day")} rows={bars.filter((it) => it.value > 0)} label={t("usage.byDay")} measure={t(`usage.${measure}`)} />
          </details>
        </Section>
      )}
      {byModel.value && (
        <Groups
          title={t("usage.byModel")}
          head={t("model.label")}
          groups={byModel.value.groups}
          of={of}
          text={text}
          measure={t(`usage.${measure}`)}
          name={(key) => key || t("usage.noModel")}
        />
      )}
      {byChat.value && (
        <Groups
          title={t("usage.byChat")}
          head={t("chat.label")}
          groups={byChat.value.groups}
          of={of}
          text={text}
          measure={t(`usage.${measure}`)}
          name={(key) => <ChatName id={key} />}
        />
      )}
    </Page>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div className="rounded-xl border border-line bg-surface px-3.5 py-2.5">
      <dt className="text-[12px] text-muted">{name}</dt>
      <dd className="text-[18px] font-semibold tabular-nums">
        {value}
        {note && <span className="block text-[11.5px] font-normal text-muted">{note}</span>}
      </dd>
    </div>
  );
}

const shown = 20;

function Groups(props: {
  title: string;
  head: string;
  groups: UsageGroup[];
  of: (it: UsageGroup) => number;
  text: (n: number) => string;
  measure: string;
  name: (key: string) => ReactNode;
}) {
  const [all, setAll] = useState(false);
  const sorted = props.groups.toSorted((a, b) => props.of(b) - props.of(a) || b.runs - a.runs);
  const most = Math.max(...sorted.map(props.of), 0);
  return (
    <Section title={props.title}>
      {sorted.length === 0 ? (
        <p className="text-[13px] text-muted">{t("usage.nothing")}</p>
      ) : (
        <table className="w-full table-fixed text-[13px]">
          <caption className="sr-only">{props.title}</caption>
          <thead className="text-left text-[11.5px] text-faint">
            <tr>
              <th className="w-1/2 pb-1 font-medium">{props.head}</th>
              <th className="hidden pb-1 text-right font-medium sm:table-cell">{t("usage.runs")}</th>
              <th className="pb-1 text-right font-medium">{props.measure}</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, all ? undefined : shown).map((it) => (
              <tr key={it.key ?? ""} className="border-t border-line align-top">
                <td className="py-1.5 pr-3">
                  <div className="truncate">{props.name(it.key ?? "")}</div>
                  <div className="mt-1">
                    <Share part={most > 0 ? props.of(it) / most : 0} />
                  </div>
                </td>
                <td className="hidden py-1.5 text-right tabular-nums sm:table-cell">{count(it.runs)}</td>
                <td className="py-1.5 text-right tabular-nums">
                  {it.unpriced_runs === it.runs && props.of(it) === 0 && props.text === money ? t("usage.unknown") : props.text(props.of(it))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {sorted.length > shown && !all && (
        <Button look="quiet" onClick={() => setAll(true)}>
          {t("common.show")}
        </Button>
      )}
    </Section>
  );
}

function Table({ head, rows, label, measure }: { head: string; rows: Bar[]; label: string; measure: string }) {
  return (
    <table className="mt-1 w-full max-w-sm text-[12.5px]">
      <caption className="sr-only">{label}</caption>
      <thead className="text-left text-[11.5px] text-faint">
        <tr>
          <th className="font-medium">{head}</th>
          <th className="text-right font-medium">{measure}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((it) => (
          <tr key={it.key} className="border-t border-line">
            <td>{it.name}</td>
            <td className="text-right tabular-nums">{it.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
