import { beforeEach, expect, it } from "vitest";
import type { ServerEvent } from "../api/types";
import { type FromHub, Hub, type Line, type Stream } from "./hub";

class FakeStream implements Stream {
  onerror: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  closed = false;
  private named = new Map<string, (event: { data: string }) => void>();
  constructor(readonly url: string) {}
  addEventListener(type: string, listener: (event: { data: string }) => void) {
    this.named.set(type, listener);
  }
  close() {
    this.closed = true;
  }
  fire(type: string, data: unknown = {}) {
    this.named.get(type)!({ data: JSON.stringify(data) });
  }
  fact(type: string, session_id: string, seq?: number) {
    this.onmessage!({ data: JSON.stringify({ type, session_id, seq, ts: "", data: {} } satisfies ServerEvent) });
  }
}

let streams: FakeStream[];
let pending: { run: () => void; ms: number }[];
let hub: Hub;
const now = () => streams.at(-1)!;
const tick = () => {
  for (const it of pending.splice(0)) it.run();
};
const tab = () => {
  const got: FromHub[] = [];
  const line: Line = { send: (message) => got.push(message) };
  hub.join(line);
  tick();
  return { line, got, events: () => got.flatMap((it) => (it.type === "event" ? [`${it.event.type}@${it.event.seq}`] : [])) };
};

beforeEach(() => {
  streams = [];
  pending = [];
  hub = new Hub(
    (url) => {
      const stream = new FakeStream(url);
      streams.push(stream);
      return stream;
    },
    {
      set: (run, ms) => {
        const entry = { run, ms };
        pending.push(entry);
        return pending.indexOf(entry) + 1;
      },
      clear: () => pending.splice(0),
    },
  );
});

it("several tabs share one stream", () => {
  const a = tab();
  const b = tab();
  hub.receive(a.line, { type: "watch", session: "A", after: 3 });
  tick();
  hub.receive(b.line, { type: "watch", session: "A", after: 3 });
  tick();
  expect(streams.filter((it) => !it.closed)).toHaveLength(1);
  now().fact("item.started", "A", 4);
  expect(a.events()).toEqual(["item.started@4"]);
  expect(b.events()).toEqual(["item.started@4"]);
});

it("reconnects from where every session was read, and waits longer each time", () => {
  const a = tab();
  hub.receive(a.line, { type: "watch", session: "A", after: 3 });
  hub.receive(a.line, { type: "watch", session: "B", after: 8 });
  tick();
  now().fire("ready");
  now().fact("run.started", "A", 5);
  now().onerror!();
  const first = pending[0]!.ms;
  tick();
  expect(now().url).toBe("/events?sessions=A,B&after=5.8");
  now().onerror!();
  expect(pending[0]!.ms).toBeGreaterThan(first);
  expect(a.got.filter((it) => it.type === "offline")).toHaveLength(2);
});

it("goes back for a tab that knows less", () => {
  const a = tab();
  hub.receive(a.line, { type: "watch", session: "A", after: 10 });
  tick();
  const b = tab();
  hub.receive(b.line, { type: "watch", session: "A", after: 7 });
  tick();
  expect(now().url).toBe("/events?sessions=A&after=7");
});

it("drops text in flight, which the chat stream carries, and hides one tab's session from another", () => {
  const a = tab();
  const b = tab();
  hub.receive(a.line, { type: "watch", session: "A", after: 0 });
  tick();
  now().fact("item.delta", "A");
  now().fact("item.started", "A", 1);
  now().fact("session.status", "A");
  expect(a.events()).toEqual(["item.started@1", "session.status@undefined"]);
  expect(b.events()).toEqual(["session.status@undefined"]);
});

it("ignores a stream that was replaced", () => {
  const a = tab();
  const old = now();
  hub.receive(a.line, { type: "watch", session: "A", after: 0 });
  tick();
  old.fact("run.started", "A", 1);
  old.onerror!();
  expect(a.got).toEqual([]);
  expect(pending).toEqual([]);
});

it("says when a cursor is too old and goes on from the new place", () => {
  const a = tab();
  hub.receive(a.line, { type: "watch", session: "A", after: 1 });
  tick();
  now().fire("cursor_too_old", { session_id: "A", floor: 90, seq: 120 });
  expect(a.got).toContainEqual({ type: "too_old", session: "A" });
  now().onerror!();
  tick();
  expect(now().url).toContain("after=120");
});

it("ends with the last tab, and at a logout", () => {
  const a = tab();
  const b = tab();
  hub.leave(a.line);
  expect(now().closed).toBe(false);
  now().fire("end", { reason: "logout" });
  expect(b.got).toContainEqual({ type: "logout" });
  expect(now().closed).toBe(true);
  hub.leave(b.line);
  expect(pending).toEqual([]);
});
