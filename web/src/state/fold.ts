import type { Phase, QueuedMessage, Question, Run, RunError, ServerEvent, Session, Snapshot, Todo, TodoEvent, Usage } from "../api/types";

export interface PhaseMark {
  phase: Phase;
  at: string;
}

/** Side is everything about a session besides its messages: what the panels show. */
export interface Side {
  session?: Session;
  seq: number;
  run?: Run;
  phases: PhaseMark[];
  lastError?: RunError;
  questions: Question[];
  todos: Todo[];
  todoEvents: TodoEvent[];
  queue: QueuedMessage[];
}

export const emptySide: Side = { seq: 0, phases: [], questions: [], todos: [], todoEvents: [], queue: [] };

export function fromSnapshot(snapshot: Snapshot, before: Side): Side {
  const pending = new Set(snapshot.questions.map((question) => question.question_id));
  const run = snapshot.active_run ?? (before.run && settled(before.run) ? before.run : undefined);
  const now = {
    ...before,
    session: snapshot.session,
    seq: snapshot.seq,
    run,
    phases: run && run.id === before.run?.id ? before.phases : marksOf(run),
    questions: [...before.questions.filter((question) => !pending.has(question.question_id) && question.state !== "pending"), ...snapshot.questions],
    todos: ordered(snapshot.todos),
    queue: snapshot.queue,
  };
  return attended(now, snapshot.questions.at(-1)?.asked_at ?? snapshot.session.updated_at);
}

const settled = (run: Run): boolean => run.outcome !== undefined;

export function marksOf(run: Run | undefined): PhaseMark[] {
  if (!run) return [];
  const marks: PhaseMark[] = [{ phase: "queued", at: run.created_at }];
  if (run.started_at) marks.push({ phase: "running", at: run.started_at });
  if (run.ended_at) marks.push({ phase: run.phase, at: run.ended_at });
  else if (marks.at(-1)!.phase !== run.phase) marks.push({ phase: run.phase, at: run.started_at ?? run.created_at });
  return marks;
}

/** recalled puts what the server remembers of a run's phases before what was seen of them here. */
export function recalled(marks: PhaseMark[], seen: PhaseMark[]): PhaseMark[] {
  const last = marks.at(-1);
  if (!last) return seen;
  const since = Date.parse(last.at);
  return seen.reduce((all, it) => (Date.parse(it.at) > since ? mark(all, it) : all), marks);
}

/** ordered sorts by order and keeps the first appearance where the order does not decide. */
export const ordered = (todos: Todo[]): Todo[] => [...todos].sort((a, b) => a.order - b.order);

/** fold applies one fact. Facts that were seen before change nothing. */
export function fold(side: Side, event: ServerEvent): Side {
  if (event.seq !== undefined) {
    if (event.seq <= side.seq) return side;
    side = { ...side, seq: event.seq, session: side.session && { ...side.session, seq: event.seq, updated_at: event.ts } };
  }
  const data = event.data ?? {};
  switch (event.type) {
    case "session.updated":
      return session(side, {
        ...(data.name !== undefined && { name: data.name }),
        ...(data.archived !== undefined && { archived: data.archived }),
        ...data.settings,
      });
    case "session.status":
      return data.status ? session(side, { status: data.status }) : side;
    case "run.started":
      return started(side, event);
    case "run.status":
      return phase(side, event);
    case "run.interrupt_requested":
      return run(side, event, (it) => ({ ...it, interrupt_requested: true }));
    case "run.error":
      return data.error ? { ...side, lastError: data.error } : side;
    case "run.ended":
      return ended(side, event);
    case "usage.updated":
      return data.usage ? run(side, event, (it) => ({ ...it, usage: data.usage as Usage })) : side;
    case "todo.snapshot":
    case "todo.update":
      return todos(side, event);
    case "human_loop.requested":
      return data.question ? attended({ ...side, questions: replace(side.questions, data.question) }, event.ts) : side;
    case "human_loop.resolved": {
      const questions = side.questions.map((question) =>
        question.question_id === data.question_id
          ? { ...question, state: data.state ?? "answered", answer: data.answer ?? question.answer, answered_by: data.answered_by, resolved_at: event.ts }
          : question,
      );
      return attended({ ...side, questions }, event.ts);
    }
    case "queue.added":
      if (!data.message || side.queue.some((message) => message.id === data.message!.id)) return side;
      return { ...side, queue: data.front ? [data.message, ...side.queue] : [...side.queue, data.message] };
    case "queue.edited":
      return { ...side, queue: side.queue.map((message) => (message.id === data.message?.id ? data.message : message)) };
    case "queue.removed":
      return { ...side, queue: side.queue.filter((message) => message.id !== data.message_id) };
    case "queue.reordered":
      return { ...side, queue: reorder(side.queue, data.order ?? []) };
    default:
      return side;
  }
}

const session = (side: Side, change: Partial<Session>): Side => (side.session ? { ...side, session: { ...side.session, ...change } } : side);

const run = (side: Side, event: ServerEvent, change: (run: Run) => Run): Side =>
  side.run && side.run.id === event.run_id ? { ...side, run: change(side.run) } : side;

function started(side: Side, event: ServerEvent): Side {
  const settings = event.data.settings;
  const next: Run = {
    id: event.run_id!,
    session_id: event.session_id!,
    number: (side.run?.number ?? side.session?.runs ?? 0) + 1,
    seq: event.seq ?? 0,
    phase: "queued",
    input: event.data.input ?? [],
    client_id: event.data.client_id,
    provider: settings?.provider ?? side.session?.provider,
    model: settings?.model ?? side.session?.model,
    execution_profile: settings?.execution_profile ?? side.session?.execution_profile,
    usage: { input: 0, output: 0 },
    executor_id: event.executor_id,
    trace_id: event.trace_id,
    created_at: event.ts,
    interrupt_requested: false,
  };
  return {
    ...side,
    run: next,
    phases: [{ phase: "queued", at: event.ts }],
    lastError: undefined,
    session: side.session && { ...side.session, active_run_id: next.id, runs: side.session.runs + 1, preview: side.session.preview || textOf(next.input) },
  };
}

export const textOf = (input: Input[]): string => input.map((part) => part.text ?? "").join("\n").trim();
type Input = { text?: string };

function phase(side: Side, event: ServerEvent): Side {
  const to = event.data.phase;
  if (!to || side.run?.id !== event.run_id) return side;
  // What a run that is over still says is why its files are not saved, and the panel of files says that.
  const noted = !["succeeded", "failed", "canceled"].includes(to) && event.data.last_error;
  const error = event.data.error ?? (noted ? { code: "phase", message: noted } : undefined);
  return {
    ...side,
    phases: mark(side.phases, { phase: to, at: event.ts }),
    lastError: error ?? side.lastError,
    run: {
      ...side.run!,
      phase: to,
      executor_id: event.executor_id ?? side.run!.executor_id,
      started_at: side.run!.started_at ?? (to === "running" ? event.ts : undefined),
    },
  };
}

const mark = (marks: PhaseMark[], next: PhaseMark): PhaseMark[] => (marks.at(-1)?.phase === next.phase ? marks : [...marks, next]);

/** attended marks that a run waits for a person, or goes on. */
function attended(side: Side, at: string): Side {
  const waits = side.questions.some((question) => question.state === "pending" && question.run_id === side.run?.id);
  const last = side.phases.at(-1)?.phase;
  if (waits && last === "running") return { ...side, phases: mark(side.phases, { phase: "waiting_human", at }) };
  if (!waits && last === "waiting_human") return { ...side, phases: mark(side.phases, { phase: "running", at }) };
  return side;
}

/** endPhase is where the pipeline leaves a run with each outcome. */
export const endPhase = { completed: "succeeded", failed: "failed", interrupted: "canceled" } as const;

// The answer is over; its files are synced after it, unless nobody had begun.
function ended(side: Side, event: ServerEvent): Side {
  const outcome = event.data.outcome ?? "completed";
  const to = side.run?.phase === "queued" ? endPhase[outcome] : "syncing";
  const after = run(side, event, (it) => ({ ...it, outcome, phase: to, error: event.data.error, usage: event.data.usage ?? it.usage, ended_at: event.ts }));
  const open = side.session?.active_run_id === event.run_id;
  return {
    ...after,
    phases: after.run?.id === event.run_id ? mark(after.phases, { phase: to, at: event.ts }) : after.phases,
    lastError: event.data.error ?? (outcome === "completed" ? undefined : side.lastError),
    // A run that is over waits for nobody.
    questions: after.questions.map((question) =>
      question.run_id === event.run_id && question.state === "pending" ? { ...question, state: "canceled", resolved_at: event.ts } : question,
    ),
    session: after.session && open ? { ...after.session, active_run_id: undefined } : after.session,
  };
}

function todos(side: Side, event: ServerEvent): Side {
  const change = event.data.todos ?? [];
  const type = event.type as TodoEvent["type"];
  const record: TodoEvent = { id: event.id ?? `${event.seq}`, seq: event.seq ?? 0, run_id: event.run_id ?? "", ts: event.ts, type, todos: change };
  return { ...side, todos: applyTodos(side.todos, record), todoEvents: [...side.todoEvents, record] };
}

/** applyTodos: a snapshot is the whole list, an update touches only what it names. */
export function applyTodos(list: Todo[], event: Pick<TodoEvent, "type" | "todos">): Todo[] {
  if (event.type === "todo.snapshot") return ordered(event.todos);
  const next = [...list];
  for (const todo of event.todos) {
    const at = next.findIndex((it) => it.id === todo.id);
    if (at < 0) next.push(todo);
    else next[at] = todo;
  }
  return ordered(next);
}

function replace(list: Question[], question: Question): Question[] {
  const at = list.findIndex((it) => it.question_id === question.question_id);
  return at < 0 ? [...list, question] : list.with(at, question);
}

export function reorder<T extends { id: string }>(list: T[], order: string[]): T[] {
  const place = new Map(order.map((id, index) => [id, index]));
  return [...list].sort((a, b) => (place.get(a.id) ?? order.length) - (place.get(b.id) ?? order.length));
}
