import { get } from "../api/http";
import type { Questions, RunPhases, Runs, TodoEvents } from "../api/types";
import { marksOf, recalled, type Side } from "./fold";
import type { Store } from "./store";

/** readPast reads what the panels want to know of a session's past; nobody waits for it. It reports whether all of it could be read. */
export async function readPast(session: string, side: Store<Side>): Promise<boolean> {
  const [runs, questions, todos] = await Promise.allSettled([
    get<Runs>(`/sessions/${session}/runs?order=desc&limit=1`),
    get<Questions>(`/sessions/${session}/human-loop?state=all`),
    get<TodoEvents>(`/sessions/${session}/todos/events?limit=200`),
  ]);
  side.set((old) => {
    const next = { ...old };
    if (runs.status === "fulfilled" && runs.value.items[0] && !old.run) {
      next.run = runs.value.items[0];
      next.phases = marksOf(next.run);
      next.lastError = next.run.error;
    }
    if (questions.status === "fulfilled") {
      const known = new Set(old.questions.map((it) => it.question_id));
      next.questions = [...questions.value.items.filter((it) => !known.has(it.question_id)), ...old.questions];
    }
    if (todos.status === "fulfilled") {
      const known = new Set(todos.value.items.map((it) => it.id));
      next.todoEvents = [...todos.value.items, ...old.todoEvents.filter((it) => !known.has(it.id))];
    }
    return next;
  });
  return (await readPhases(side)) && [runs, questions, todos].every((it) => it.status === "fulfilled");
}

/** readPhases asks what a run went through before this page followed it. */
async function readPhases(side: Store<Side>): Promise<boolean> {
  const run = side.get().run?.id;
  if (!run) return true;
  try {
    const { items } = await get<RunPhases>(`/runs/${run}/phases`);
    side.set((old) => (old.run?.id === run ? { ...old, phases: recalled(items, old.phases) } : old));
    return true;
  } catch {
    return false;
  }
}
