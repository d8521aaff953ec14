import type { Budget, Budgets as BudgetList } from "../api/types";
import { maybe, t } from "../i18n";
import "../i18n/later";
import { Share } from "../ui/bars";
import { Badge } from "../ui/controls";
import { money } from "../ui/money";
import { count, moment } from "../ui/time";
import { ChatName } from "./chat-name";
import { Failed, Section, useLoad } from "./page";

type State = Budget["states"][number];

/** most is how many subjects of one budget are shown: those that are nearest to its limit. */
const most = 3;

const tones = { ok: "ok", soft: "warn", spent: "bad" } as const;
const fills = { ok: "fill-accent", soft: "fill-warn", spent: "fill-bad" } as const;

const amount = (budget: Budget, it: State["spent"]): string =>
  [budget.limit_micros && money(it.micros), budget.limit_tokens && t("run.tokens", { n: count(it.tokens) })].filter(Boolean).join(", ");

/** used is how much of a budget is gone, by the limit that is nearer. */
export const used = (budget: Pick<Budget, "limit_micros" | "limit_tokens">, it: State["spent"]): number =>
  Math.max(budget.limit_micros ? it.micros / budget.limit_micros : 0, budget.limit_tokens ? it.tokens / budget.limit_tokens : 0);

/** Budgets shows the limits that concern the user, how much of each is gone and when it starts again. */
export function Budgets() {
  const list = useLoad<BudgetList>("/budgets");
  if (list.problem) return <Failed problem={list.problem} reload={list.reload} />;
  if (!list.value?.items.length) return null;
  return (
    <Section title={t("budgets.title")}>
      <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
        {list.value.items.map((it) => (
          <Line key={it.id} budget={it} />
        ))}
      </ul>
    </Section>
  );
}

function Line({ budget }: { budget: Budget }) {
  const limit = amount(budget, { micros: budget.limit_micros ?? 0, tokens: budget.limit_tokens ?? 0 });
  const nothing: State = { subject: "", spent: { micros: 0, tokens: 0 }, reserved: { micros: 0, tokens: 0 }, unpriced: 0, level: "ok" };
  const states = budget.states.length ? budget.states.slice(0, most) : [nothing];
  return (
    <li className="px-3.5 py-3 text-[13px]">
      <p className="font-medium">
        {t(budget.subject ? "budgets.of" : "budgets.each", { scope: maybe("scope", budget.scope), limit, period: maybe("period", budget.period) })}
      </p>
      <ul className="mt-2 space-y-2">
        {states.map((it) => (
          <li key={it.subject}>
            <div className="mb-1 flex flex-wrap items-center gap-x-2 text-[12.5px] text-muted">
              {budget.scope === "thread" && it.subject && (
                <span className="min-w-0 truncate">
                  <ChatName id={it.subject} />
                </span>
              )}
              <span className="flex-1 tabular-nums">{t("budgets.spent", { spent: amount(budget, it.spent), limit })}</span>
              {it.level !== "ok" && <Badge tone={tones[it.level]}>{maybe("level", it.level)}</Badge>}
            </div>
            <Share part={used(budget, it.spent)} tone={fills[it.level]} />
          </li>
        ))}
      </ul>
      <p className="mt-1.5 text-[12px] text-muted">
        {maybe("action", budget.action)}
        {budget.resets_at && <> · {t("budgets.resets", { time: moment(budget.resets_at) })}</>}
      </p>
    </li>
  );
}
