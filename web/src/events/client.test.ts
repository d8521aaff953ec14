import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { FromHub, ToHub } from "./hub";

// The page's side: a shared worker that can end, be refused or be missing.

class Port {
  onmessage: ((event: { data: FromHub | { type: "here"; lock: string } }) => void) | null = null;
  heard: (ToHub | { type: "hello"; lock: string })[] = [];
  postMessage = (message: ToHub) => this.heard.push(message);
  close = () => {};
}

class Worker {
  static all: Worker[] = [];
  port = new Port();
  onerror: ((event: unknown) => void) | null = null;
  constructor() {
    Worker.all.push(this);
  }
}

class Source {
  static urls: string[] = [];
  onerror = null;
  onmessage = null;
  constructor(url: string) {
    Source.urls.push(url);
  }
  addEventListener() {}
  close() {}
}

let freed: Map<string, () => unknown>;
const word = (it: ToHub) => (it.type === "watch" ? `watch ${it.session}@${it.after}` : it.type);

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetModules();
  Worker.all = [];
  Source.urls = [];
  freed = new Map();
  vi.stubGlobal("SharedWorker", Worker);
  vi.doMock("./stream", () => ({ fetchStream: (url: string) => new Source(url) }));
  vi.stubGlobal("navigator", {
    language: "en",
    locks: {
      // The page's own lock is free at once; the worker's when the worker ends.
      request: (name: string, ...rest: unknown[]) => {
        const run = rest.at(-1) as () => unknown;
        if (name.startsWith("thole-tab-")) run();
        else freed.set(name, run);
        return new Promise(() => {});
      },
    },
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const fact = (worker: Worker, seq: number) => worker.port.onmessage!({ data: { type: "event", event: { type: "run.started", session_id: "A", seq, ts: "", data: {} } } });

it("a worker that ended is replaced, and asked for what came after the last fact", async () => {
  const { start, watch } = await import("./client");
  start();
  watch("A", 3);
  const [first] = Worker.all as [Worker];
  first.port.onmessage!({ data: { type: "here", lock: "thole-worker-1" } });
  fact(first, 5);
  freed.get("thole-worker-1")!();
  expect(Worker.all).toHaveLength(2);
  expect(Worker.all[1]!.port.heard.map(word).toSorted()).toEqual(["hello", "watch A@5"]);
});

it("a worker that cannot be started is done without", async () => {
  const { start, watch } = await import("./client");
  start();
  watch("A", 3);
  Worker.all[0]!.onerror!({});
  vi.runOnlyPendingTimers();
  expect(Source.urls).toEqual(["/events?sessions=A&after=3"]);
});

it.each(["missing", "forbidden"])("a shared worker that is %s is done without", async (how) => {
  const forbidden = class {
    constructor() {
      throw new Error("not here");
    }
  };
  vi.stubGlobal("SharedWorker", how === "missing" ? undefined : forbidden);
  const { start, watch } = await import("./client");
  watch("A", 3); // before the start, too
  start();
  vi.runOnlyPendingTimers();
  expect(Source.urls).toEqual(["/events?sessions=A&after=3"]);
});

it("another login wakes a stream that a logout ended", async () => {
  const { start } = await import("./client");
  start();
  start();
  expect(Worker.all).toHaveLength(1);
  expect(Worker.all[0]!.port.heard.map(word)).toEqual(["hello", "hello"]);
});
