import { type KeyboardEvent, useRef } from "react";
import { useSide } from "../chat/context";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { type PanelName, prefs, setPrefs } from "../state/prefs";
import { useStore } from "../state/store";
import { later } from "../ui/later";
import { Agent } from "./agent";
import { Asks } from "./asks";
import { Jobs, useJobs } from "./jobs";
import { Todos } from "./todos";

// Read when it is asked for: a chat without a project has none.
const Changes = later(() => import("../changes/changes"));

const names: PanelName[] = ["agent", "changes", "todo", "ask", "jobs"];

/** Panel stands next to the chat and never interrupts it. Where it covers the chat, onLeave uncovers it. */
export default function Panel({ onLeave }: { onLeave?: () => void }) {
  const tab = useStore(prefs, (it) => it.tab);
  const pending = useSide((side) => side.questions.filter((it) => it.state === "pending").length);
  const open = useSide((side) => side.todos.filter((it) => it.state === "todo" || it.state === "doing").length);
  const jobs = useJobs();
  const list = useRef<HTMLDivElement>(null);
  const counts: Record<PanelName, number> = { agent: 0, changes: 0, todo: open, ask: pending, jobs: jobs.held };
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(tab) + step + names.length) % names.length]!;
    setPrefs({ tab: next });
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div
        ref={list}
        role="tablist"
        aria-label={t("panel.label")}
        onKeyDown={keys}
        className="flex shrink-0 overflow-x-auto overflow-y-hidden border-b border-line px-2 pt-2"
      >
        {names.map((name) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={tab === name}
            aria-controls="panel-body"
            tabIndex={tab === name ? 0 : -1}
            onClick={() => setPrefs({ tab: name })}
            className={`-mb-px flex items-center gap-1 rounded-t-lg border-b-2 px-2 pb-2 pt-1 text-[13px] font-medium ${
              tab === name ? "border-accent text-ink" : "border-transparent text-muted hover:text-ink"
            }`}
          >
            {t(`panel.${name}` as Key)}
            {counts[name] > 0 && (
              <span
                className={`rounded-full px-1.5 text-[11px] leading-[18px]
                  ${name === "ask" || name === "jobs" ? "bg-warn-soft text-warn" : "bg-raised text-muted"}`}
              >
                {counts[name]}
              </span>
            )}
          </button>
        ))}
      </div>
      <div id="panel-body" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0} className="min-h-0 flex-1 overflow-y-auto p-4">
        {tab === "agent" && <Agent />}
        {tab === "changes" && <Changes onLeave={onLeave} />}
        {tab === "todo" && <Todos />}
        {tab === "ask" && <Asks />}
        {tab === "jobs" && <Jobs jobs={jobs} />}
      </div>
    </div>
  );
}
