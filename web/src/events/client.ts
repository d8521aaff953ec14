import type { ServerEvent } from "../api/types";
import { uuid } from "../api/http";
import { proof } from "../api/proof";
import { Store } from "../state/store";
import { Hub, type FromHub, type Line, type ToHub } from "./hub";
import { fetchStream } from "./stream";

/** online is false only after the line has been down for a moment: a short gap is not worth a word. */
export const online = new Store(true);
const patience = 1500;

type Listener = {
  event?: (event: ServerEvent) => void;
  /** The stream is there; lost: it was down before, not only asked for more. */
  ready?: (lost: boolean) => void;
  tooOld?: (session: string) => void;
  logout?: () => void;
  /** The line is still down: called at every attempt that fails. */
  offline?: () => void;
};

const listeners = new Set<Listener>();
let post: ((message: ToHub) => void) | undefined;
let waiting: ReturnType<typeof setTimeout> | undefined;
let lost = false;

/** watched is what a hub has to be sent again when it is replaced: by whom a session is wanted, and after which fact. */
const watched = new Map<string, { by: number; after: number }>();

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** watch asks for everything of one session after seq; the returned function ends it. */
export function watch(session: string, after: number): () => void {
  const before = watched.get(session);
  watched.set(session, { by: (before?.by ?? 0) + 1, after: Math.min(before?.after ?? after, after) });
  post?.({ type: "watch", session, after });
  return () => {
    const now = watched.get(session);
    if (!now) return;
    if (--now.by > 0) return;
    watched.delete(session);
    post?.({ type: "unwatch", session });
  };
}

function receive(message: FromHub): void {
  switch (message.type) {
    case "ready":
      clearTimeout(waiting);
      waiting = undefined;
      online.set(true);
      for (const listener of listeners) listener.ready?.(lost);
      lost = false;
      return;
    case "offline":
      lost = true;
      if (!online.get()) for (const listener of listeners) listener.offline?.();
      waiting ??= setTimeout(() => online.set(false), patience);
      return;
    case "event": {
      const { session_id, seq } = message.event;
      const known = session_id ? watched.get(session_id) : undefined;
      if (known && seq !== undefined) known.after = Math.max(known.after, seq);
      for (const listener of listeners) listener.event?.(message.event);
      return;
    }
    case "too_old":
      for (const listener of listeners) listener.tooOld?.(message.session);
      return;
    case "logout":
      for (const listener of listeners) listener.logout?.();
  }
}

const lock = `thole-tab-${uuid()}`;

/** start connects the page, and wakes a stream that a logout ended. */
export function start(): void {
  if (post) return post({ type: "hello", lock, proof: proof() });
  if (typeof SharedWorker === "undefined" || !navigator.locks) return inPage();
  void navigator.locks.request(lock, () => {
    holds = true;
    post?.({ type: "hello", lock, proof: proof() });
    return new Promise<never>(() => {});
  });
  addEventListener("pagehide", (event) => {
    if (!event.persisted) post?.({ type: "bye" });
  });
  shared();
}

/** holds: the tab has its lock. A worker that heard of the lock before could take it, and think that the tab is gone. */
let holds = false;
/** A worker may end once, as after a crash of its process; one that ends again is not trusted a third time. */
let deaths = 0;

function shared(): void {
  let worker: SharedWorker;
  try {
    worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "thole-events" });
  } catch {
    return inPage();
  }
  const port = worker.port;
  let over = false;
  const replace = (by: () => void) => {
    if (over) return;
    over = true;
    port.onmessage = null;
    port.close();
    by();
  };
  worker.onerror = () => replace(inPage); // its script is gone, as after an update of the server
  port.onmessage = ({ data }: MessageEvent<FromHub>) => {
    if (data.type === "here") void navigator.locks.request(data.lock, { mode: "shared" }, () => replace(++deaths > 1 ? inPage : shared));
    else receive(data);
  };
  introduce((message) => port.postMessage(message));
}

function inPage(): void {
  const hub = new Hub(fetchStream);
  const line: Line = { send: receive };
  holds = true; // the hub ends with the page: no lock is needed
  introduce((message) => hub.receive(line, message));
}

/** introduce makes a hub the page's, and sends it what an earlier one knew. */
function introduce(to: (message: ToHub) => void): void {
  post = to;
  if (holds) to({ type: "hello", lock, proof: proof() });
  for (const [session, { after }] of watched) to({ type: "watch", session, after });
}
