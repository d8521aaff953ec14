import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { FromHub } from "./hub";

// The worker as the browser starts it: only its stream and the browser's locks are made here.

class Source {
  static all: Source[] = [];
  onerror: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  closed = false;
  constructor(readonly url: string) {
    Source.all.push(this);
  }
  addEventListener() {}
  close() {
    this.closed = true;
  }
  static fact(session_id: string, seq: number) {
    for (const it of Source.all) if (!it.closed) it.onmessage!({ data: JSON.stringify({ type: "todo.snapshot", session_id, seq, ts: "", data: {} }) });
  }
}

const open = () => Source.all.filter((it) => !it.closed);

/** Locks of one browser: a tab holds its own until it is gone. */
class Locks {
  private held = new Set<string>();
  private waiting = new Map<string, (() => unknown)[]>();
  hold(name: string) {
    this.held.add(name);
  }
  release(name: string) {
    this.held.delete(name);
    for (const run of this.waiting.get(name) ?? []) run();
    this.waiting.delete(name);
  }
  request(name: string, ...rest: unknown[]) {
    const run = rest.at(-1) as () => unknown;
    if (this.held.has(name)) this.waiting.set(name, [...(this.waiting.get(name) ?? []), run]);
    else return Promise.resolve(run());
    return new Promise(() => {});
  }
}

let locks: Locks;
let connect: (connection: { ports: unknown[] }) => void;

class Tab {
  got: FromHub[] = [];
  port = {
    onmessage: undefined as ((event: { data: unknown }) => void) | undefined | null,
    postMessage: (message: FromHub) => this.got.push(message),
    addEventListener: () => {},
    close: () => {},
  };
  constructor(readonly lock: string) {
    locks.hold(lock);
    connect({ ports: [this.port] });
  }
  hello = () => this.port.onmessage?.({ data: { type: "hello", lock: this.lock } });
  watch = (after = 0) => this.port.onmessage?.({ data: { type: "watch", session: "A", after } });
  facts = () => this.got.flatMap((it) => (it.type === "event" ? [it.event.seq] : []));
}

beforeEach(async () => {
  vi.useFakeTimers();
  vi.resetModules();
  Source.all = [];
  locks = new Locks();
  vi.doMock("./stream", () => ({ fetchStream: (url: string) => new Source(url) }));
  vi.stubGlobal("navigator", { locks });
  await import("./worker");
  connect = (self as unknown as { onconnect: typeof connect }).onconnect;
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

for (const order of [
  ["hello", "watch"],
  ["watch", "hello"],
] as const)
  it(`a tab that says ${order.join(", then ")} gets the facts of its session`, () => {
    const tab = new Tab("tab");
    for (const word of order) tab[word]();
    vi.runOnlyPendingTimers();
    expect(open().map((it) => it.url)).toEqual(["/events?sessions=A&after=0"]);
    Source.fact("A", 1);
    expect(tab.facts()).toEqual([1]);
  });

it("a second hello, as after another login, forgets nothing", () => {
  const tab = new Tab("tab");
  tab.hello();
  tab.watch();
  tab.hello();
  vi.runOnlyPendingTimers();
  Source.fact("A", 1);
  expect(tab.facts()).toEqual([1]);
});

it("a tab that went away is forgotten, also when its last words come late", () => {
  const gone = new Tab("gone");
  gone.hello();
  gone.watch();
  const stays = new Tab("stays");
  stays.hello();
  vi.runOnlyPendingTimers();
  locks.release("gone");
  gone.watch(7);
  vi.runOnlyPendingTimers();
  Source.fact("A", 8);
  expect(gone.facts()).toEqual([]);
  expect(open()).toHaveLength(1);
  locks.release("stays");
  vi.runOnlyPendingTimers();
  expect(open()).toHaveLength(0);
});
