import { useMemo, useState } from "react";
import type { Todo, TodoEvent, TodoState } from "../api/types";
import { useSide } from "../chat/context";
import { t, type Key } from "../i18n";
import { applyTodos } from "../state/fold";
import { Button } from "../ui/controls";
import { clock } from "../ui/time";
import { TodoLine } from "./todo-line";

const groups: TodoState[] = ["doing", "todo", "done", "canceled"];

/** replay is the list as it was after the first n changes. */
export const replay = (events: TodoEvent[], n: number): Todo[] => events.slice(0, n).reduce<Todo[]>((list, event) => applyTodos(list, event), []);

export function Todos() {
  const now = useSide((side) => side.todos);
  const events = useSide((side) => side.todoEvents);
  const working = useSide((side) => side.session?.active_run_id !== undefined);
  const [at, setAt] = useState<number>();
  const todos = useMemo(() => (at === undefined ? now : replay(events, at)), [at, now, events]);
  if (now.length === 0 && events.length === 0) return <p className="text-[13px] text-muted">{t("todo.none")}</p>;
  return (
    <div className="space-y-5">
      {groups.map((state) => {
        const items = todos.filter((todo) => todo.state === state);
        if (items.length === 0) return null;
        return (
          <section key={state}>
            <h3 className="mb-1.5 flex justify-between text-[11.5px] font-medium text-faint">
              {t(`todo.${state}` as Key)} <span className="tabular-nums">{items.length}</span>
            </h3>
            <ul className="space-y-1.5">
              {items.map((todo) => (
                <TodoLine key={todo.id} todo={todo} live={working && at === undefined} />
              ))}
            </ul>
          </section>
        );
      })}
      {events.length > 1 && (
        <section className="border-t border-line pt-3">
          <h3 className="mb-1.5 text-[11.5px] font-medium text-faint">{t("todo.timeline")}</h3>
          <input
            type="range"
            aria-label={t("todo.replay")}
            min={1}
            max={events.length}
            value={at ?? events.length}
            onChange={(event) => setAt(event.target.valueAsNumber)}
            className="w-full accent-[var(--accent)]"
          />
          <p className="text-[12px] text-muted">
            {t("todo.at", { n: at ?? events.length, all: events.length, time: clock(events[(at ?? events.length) - 1]!.ts) })}
          </p>
          {at !== undefined && (
            <Button look="quiet" className="mt-1 -ml-3" onClick={() => setAt(undefined)}>
              {t("todo.live")}
            </Button>
          )}
        </section>
      )}
    </div>
  );
}
