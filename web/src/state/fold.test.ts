import { describe, expect, it } from "vitest";
import type { EventData, ServerEvent, Session } from "../api/types";
import { applyTodos, emptySide, fold, fromSnapshot, recalled, reorder, type Side } from "./fold";

const session = { id: "s", name: "", preview: "", provider: "codex", archived: false, created_at: "", updated_at: "", seq: 4, floor: 0, runs: 0, status: {}, usage: { input: 0, output: 0 } } as unknown as Session;
const begin: Side = fromSnapshot({ session, seq: 4, questions: [], todos: [], queue: [] }, emptySide);

let seq = 4;
const event = (type: string, data: EventData = {}, run_id = "r"): ServerEvent => ({ type, seq: ++seq, session_id: "s", run_id, ts: new Date(seq * 1000).toISOString(), data });
const play = (side: Side, ...events: ServerEvent[]): Side => events.reduce(fold, side);

describe("fold", () => {
  it("ignores what was seen before", () => {
    const first = event("queue.added", { message: { id: "m", session_id: "s", input: [], created_at: "" } });
    const once = fold(begin, first);
    expect(fold(once, first)).toBe(once);
    expect(fold(once, { ...first, type: "queue.removed", data: { message_id: "m" } }).queue).toHaveLength(1);
  });

  it("keeps ephemeral facts out of the order", () => {
    const side = fold(begin, { type: "session.status", session_id: "s", ts: "", data: { status: { ...session.status, active: true } } });
    expect(side.seq).toBe(begin.seq);
    expect(side.session?.status.active).toBe(true);
  });

  it("walks a run through its phases: its files are synced after its end", () => {
    const mid = play(begin, event("run.started"), event("run.status", { phase: "running" }), event("run.ended", { outcome: "completed" }));
    expect(mid.run).toMatchObject({ outcome: "completed", phase: "syncing" });
    const side = play(begin, event("run.started"), event("run.status", { phase: "running" }), event("run.ended", { outcome: "completed" }), event("run.status", { phase: "exported" }), event("run.status", { phase: "succeeded" }));
    expect(side.phases.map((it) => it.phase)).toEqual(["queued", "running", "syncing", "exported", "succeeded"]);
    expect(side.run?.phase).toBe("succeeded");
    expect(side.session?.active_run_id).toBeUndefined();
  });

  it("shows how long a run waited for a person, also after a reload", () => {
    const ask = (id: string) => event("human_loop.requested", { question: { question_id: id, session_id: "s", run_id: "r", kind: "command", state: "pending", asked_at: "2026-01-01T00:00:00Z" } });
    const waits = play(begin, event("run.started"), event("run.status", { phase: "running" }), ask("a"), ask("b"), event("human_loop.resolved", { question_id: "a" }));
    expect(waits.phases.map((it) => it.phase)).toEqual(["queued", "running", "waiting_human"]);
    expect(fold(waits, event("human_loop.resolved", { question_id: "b" })).phases.at(-1)?.phase).toBe("running");
    const run = { ...waits.run!, phase: "running" as const, started_at: "2026-01-01T00:00:00Z" };
    const loaded = fromSnapshot({ session, seq: 99, active_run: run, questions: waits.questions.filter((it) => it.state === "pending"), todos: [], queue: [] }, emptySide);
    expect(loaded.phases.map((it) => it.phase)).toEqual(["queued", "running", "waiting_human"]);
  });

  it("leaves why files are not saved to the panel of files, and keeps why a run was taken up again", () => {
    const again = play(begin, event("run.started"), event("run.status", { phase: "queued", last_error: "the executor was lost" }));
    expect(again.lastError?.message).toBe("the executor was lost");
    const side = play(begin, event("run.started"), event("run.ended", { outcome: "completed" }), event("run.status", { phase: "succeeded", last_error: "the turn's files are not saved: disk full" }));
    expect(side.lastError).toBeUndefined();
  });

  it("ends a run that nobody took at once", () => {
    const side = play(begin, event("run.started"), event("run.ended", { outcome: "interrupted" }));
    expect(side.phases.map((it) => it.phase)).toEqual(["queued", "canceled"]);
  });

  it("does not let a late fact of an old run touch the new one", () => {
    const side = play(begin, event("run.started", {}, "old"), event("run.ended", { outcome: "completed" }, "old"), event("run.started", {}, "new"), event("run.status", { phase: "exported" }, "old"), event("run.ended", { outcome: "failed" }, "old"));
    expect(side.run).toMatchObject({ id: "new", phase: "queued" });
    expect(side.session?.active_run_id).toBe("new");
  });

  it("settles questions where they were answered, and cancels those of a run that is over", () => {
    const ask = (id: string) => event("human_loop.requested", { question: { question_id: id, session_id: "s", run_id: "r", kind: "command", state: "pending" } });
    const side = play(begin, event("run.started"), ask("a"), ask("b"), event("human_loop.resolved", { question_id: "a", state: "answered", answered_by: "tui", answer: { decision: "deny" } }), event("run.ended", { outcome: "interrupted" }));
    expect(side.questions.map((it) => [it.question_id, it.state, it.answered_by])).toEqual([["a", "answered", "tui"], ["b", "canceled", undefined]]);
  });

  it("takes a snapshot over what was known, without bringing old questions back", () => {
    const before = play(begin, event("run.started"), event("human_loop.requested", { question: { question_id: "a", session_id: "s", run_id: "r", kind: "input", state: "pending" } }));
    const after = fromSnapshot({ session, seq: 99, questions: [], todos: [], queue: [] }, before);
    expect(after.questions).toEqual([]);
    expect(after.run).toBeUndefined();
  });
});

describe("todos", () => {
  const todo = (id: string, state: "todo" | "done", order = 0) => ({ id, content: id, state, order });

  it("an update touches only what it names; a snapshot is the whole list", () => {
    const list = applyTodos([], { type: "todo.snapshot", todos: [todo("b", "todo", 1), todo("a", "todo", 0)] });
    expect(list.map((it) => it.id)).toEqual(["a", "b"]);
    const next = applyTodos(list, { type: "todo.update", todos: [todo("b", "done", 1)] });
    expect(next.map((it) => it.state)).toEqual(["todo", "done"]);
    expect(applyTodos(next, { type: "todo.snapshot", todos: [todo("c", "todo")] })).toHaveLength(1);
  });

  it("keeps the first appearance where the order does not decide", () => {
    expect(applyTodos([], { type: "todo.snapshot", todos: [todo("x", "todo"), todo("y", "todo"), todo("w", "todo")] }).map((it) => it.id)).toEqual(["x", "y", "w"]);
  });
});

it("a queue keeps messages that an order does not name", () => {
  expect(reorder([{ id: "a" }, { id: "b" }, { id: "c" }], ["c", "a"]).map((it) => it.id)).toEqual(["c", "a", "b"]);
});

describe("phases that the server remembers", () => {
  const at = (phase: string, second: number) => ({ phase, at: `2026-01-01T00:00:0${second}Z` }) as Side["phases"][number];

  it("come before what was seen here, once", () => {
    const marks = [at("queued", 0), at("restoring", 1), at("running", 2), at("waiting_human", 3)];
    expect(recalled(marks, [at("queued", 0), at("running", 2), at("waiting_human", 3), at("running", 4)])).toEqual([...marks, at("running", 4)]);
    expect(recalled(marks, [])).toEqual(marks);
    expect(recalled([], marks)).toEqual(marks);
  });
});
