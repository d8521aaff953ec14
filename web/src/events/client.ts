import type { ServerEvent } from "../api/types";
import { uuid } from "../api/http";
import { Store } from "../state/store";
import { Hub, type FromHub, type Line, type Stream, type ToHub } from "./hub";

/** online is false only after the line has been down for a moment: a short gap is not worth a word. */
export const online = new Store(true);
const patience = 1500;

type Listener = {
  event?: (event: ServerEvent) => void;
  ready?: () => void;
  tooOld?: (session: string) => void;
  logout?: () => void;
};

const listeners = new Set<Listener>();
let post: ((message: ToHub) => void) | undefined;
let waiting: ReturnType<typeof setTimeout> | undefined;
const watched = new Map<string, number>();

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** watch asks for everything of one session after seq; the returned function ends it. */
export function watch(session: string, after: number): () => void {
  watched.set(session, (watched.get(session) ?? 0) + 1);
  post?.({ type: "watch", session, after });
  return () => {
    const left = (watched.get(session) ?? 1) - 1;
    if (left > 0) watched.set(session, left);
    else {
      watched.delete(session);
      post?.({ type: "unwatch", session });
    }
  };
}

function receive(message: FromHub): void {
  switch (message.type) {
    case "ready":
      clearTimeout(waiting);
      waiting = undefined;
      online.set(true);
      for (const listener of listeners) listener.ready?.();
      return;
    case "offline":
      waiting ??= setTimeout(() => online.set(false), patience);
      return;
    case "event":
      for (const listener of listeners) listener.event?.(message.event);
      return;
    case "too_old":
      for (const listener of listeners) listener.tooOld?.(message.session);
      return;
    case "logout":
      for (const listener of listeners) listener.logout?.();
  }
}

/** start connects the page; it is called once, after login. */
export function start(): void {
  if (post) return;
  if (typeof SharedWorker !== "undefined" && navigator.locks) shared();
  else inPage();
}

function shared(): void {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "thole-events" });
  const lock = `thole-tab-${uuid()}`;
  worker.port.onmessage = (event: MessageEvent<FromHub>) => receive(event.data);
  post = (message) => worker.port.postMessage(message);
  void navigator.locks.request(lock, () => {
    worker.port.postMessage({ type: "hello", lock });
    return new Promise<never>(() => {});
  });
  addEventListener("pagehide", (event) => {
    if (!event.persisted) worker.port.postMessage({ type: "bye" } satisfies ToHub);
  });
}

function inPage(): void {
  const hub = new Hub((url) => new EventSource(url) as unknown as Stream);
  const line: Line = { send: receive };
  post = (message) => hub.receive(line, message);
  hub.join(line);
}
