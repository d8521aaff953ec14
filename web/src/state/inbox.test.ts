import { beforeEach, expect, it, vi } from "vitest";
import type { Question, ServerEvent } from "../api/types";

const answers: Promise<{ items: Question[] }>[] = [];
const get = vi.fn(() => answers.shift()!);
vi.mock("../api/http", () => ({ get, post: vi.fn(), query: () => "" }));
vi.mock("../events/client", () => ({ listen: () => () => {} }));
const { follow, inbox, loadInbox, openCount, sweep } = await import("./inbox");

const ask = (id: string, run = "r1", session = "A"): Question => ({ question_id: id, run_id: run, session_id: session, kind: "command", state: "pending", asked_at: "2026-01-01T00:00:00Z" }) as Question;
const event = (type: string, data: object, more: object = {}): ServerEvent => ({ type, ts: "2026-01-01T00:01:00Z", session_id: "A", data, ...more }) as ServerEvent;
const ids = () => inbox.get().items.map((it) => `${it.question_id} ${it.state}`);

beforeEach(() => {
  answers.length = 0;
  get.mockClear();
  inbox.set({ items: [], state: "loading" });
});

it("counts what waits, and keeps what was settled in its place until it is swept", () => {
  for (const id of ["1", "2"]) follow(event("human_loop.requested", { question: ask(id) }));
  follow(event("human_loop.requested", { question: ask("1") })); // once more
  follow(event("human_loop.resolved", { question_id: "1", state: "answered", answer: { decision: "allow" } }));
  expect(ids()).toEqual(["1 answered", "2 pending"]);
  expect(openCount(inbox.get())).toBe(1);
  sweep();
  expect(ids()).toEqual(["2 pending"]);
});

it("a status that does not fit the questions for a while has them read again", async () => {
  vi.useFakeTimers();
  const status = (waits: boolean) => event("session.status", { status: { waiting_on_input: waits } });
  follow(status(true));
  follow(event("human_loop.requested", { question: ask("1") })); // the news came right after
  vi.advanceTimersByTime(1000);
  expect(get).not.toHaveBeenCalled();
  answers.push(Promise.resolve({ items: [] }));
  follow(status(false));
  await vi.advanceTimersByTimeAsync(1000);
  expect(ids()).toEqual([]);
  vi.useRealTimers();
});

it("a run that ended and a chat that is gone wait for nobody", () => {
  follow(event("human_loop.requested", { question: ask("1", "r1") }));
  follow(event("human_loop.requested", { question: ask("2", "r2", "B") }));
  follow(event("run.ended", { outcome: "interrupted" }, { run_id: "r1" }));
  expect(ids()).toEqual(["1 canceled", "2 pending"]);
  follow(event("session.deleted", {}, { session_id: "B" }));
  expect(ids()).toEqual(["1 canceled"]);
});

it("a list that was asked for before a change does not undo it", async () => {
  follow(event("human_loop.requested", { question: ask("1") }));
  let answer!: (value: { items: Question[] }) => void;
  answers.push(new Promise((done) => (answer = done)), Promise.resolve({ items: [] }));
  const loaded = loadInbox();
  follow(event("human_loop.resolved", { question_id: "1", state: "answered" }));
  answer({ items: [ask("1")] });
  await loaded;
  expect(ids()).toEqual(["1 answered"]);
});

it("what was settled while the line was down is gone after it", async () => {
  follow(event("human_loop.requested", { question: ask("1") }));
  answers.push(Promise.resolve({ items: [ask("2")] }));
  await loadInbox();
  expect(ids()).toEqual(["2 pending"]);
});
