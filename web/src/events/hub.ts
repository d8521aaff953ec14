import type { ServerEvent } from "../api/types";

// Several tabs share one connection: a browser allows six per host, and every tab wants the news. The hub runs in a
// shared worker where there is one, and inside the page otherwise; both speak these messages.

// Messages of a tab may arrive in any order: a "watch" counts whether or not a "hello" came before it.

/** "hello" carries the name of a lock that the tab holds as long as it lives, and the proof, which a worker cannot read. */
export type ToHub =
  | { type: "hello"; lock?: string; proof?: string }
  | { type: "watch"; session: string; after: number }
  | { type: "unwatch"; session: string }
  | { type: "bye" };

export type FromHub =
  | { type: "ready" }
  | { type: "event"; event: ServerEvent }
  | { type: "too_old"; session: string }
  | { type: "offline" }
  | { type: "logout" }
  /** The shared worker holds this lock as long as it lives. */
  | { type: "here"; lock: string };

export interface Stream {
  onerror: (() => void) | null;
  onmessage: ((event: { data: string }) => void) | null;
  addEventListener(type: string, listener: (event: { data: string }) => void): void;
  close(): void;
}

export interface Line {
  send(message: FromHub): void;
}

interface Timers {
  set(run: () => void, ms: number): number;
  clear(id: number): void;
}

const most = 32; // sessions one stream may name
const firstWait = 400;
const longestWait = 8000;

/** Hub holds the one stream, remembers how far every watched session was read, and hands events to the lines. */
export class Hub {
  private lines = new Map<Line, Set<string>>();
  private cursors = new Map<string, number>();
  private stream?: Stream;
  private timer?: number;
  private wait = firstWait;
  private open = false;
  private proof = "";

  constructor(
    private connect: (url: string, proof: string) => Stream,
    private timers: Timers = { set: (run, ms) => setTimeout(run, ms) as unknown as number, clear: (id) => clearTimeout(id) },
  ) {}

  /** join may be repeated: it keeps what the line watches, and starts a stream that a logout ended. */
  join(line: Line): void {
    if (!this.lines.has(line)) this.lines.set(line, new Set());
    if (!this.stream) this.restart(0);
    else if (this.open) line.send({ type: "ready" });
  }

  leave(line: Line): void {
    const sessions = this.lines.get(line);
    if (!sessions) return;
    this.lines.delete(line);
    for (const session of sessions) this.forget(session);
    if (this.lines.size === 0) this.stop();
  }

  receive(line: Line, message: ToHub): void {
    switch (message.type) {
      case "hello":
        this.proof = message.proof ?? this.proof;
        return this.join(line);
      case "watch":
        if (!this.lines.has(line)) this.join(line);
        return this.watch(line, message.session, message.after);
      case "unwatch":
        this.lines.get(line)?.delete(message.session);
        return this.forget(message.session);
      case "bye":
        return this.leave(line);
    }
  }

  // A second tab may know less than what was already read for the first: then the stream goes back, and the tab that
  // knows more ignores what it has seen.
  private watch(line: Line, session: string, after: number): void {
    this.lines.get(line)?.add(session);
    const cursor = this.cursors.get(session);
    if (cursor !== undefined && cursor <= after) return;
    this.cursors.set(session, after);
    this.restart(0);
  }

  private forget(session: string): void {
    for (const watched of this.lines.values()) if (watched.has(session)) return;
    // The stream goes on naming it until the next restart: not worth a reconnect.
    this.cursors.delete(session);
  }

  private stop(): void {
    if (this.timer !== undefined) this.timers.clear(this.timer);
    this.timer = undefined;
    this.stream?.close();
    this.stream = undefined;
    this.open = false;
  }

  private restart(wait: number): void {
    this.stop();
    this.timer = this.timers.set(() => this.start(), wait);
  }

  private start(): void {
    const named = [...this.cursors.keys()].slice(-most);
    const after = named.map((session) => this.cursors.get(session)).join(".");
    const url = named.length ? `/events?sessions=${named.map(encodeURIComponent).join(",")}&after=${after}` : "/events";
    const stream = this.connect(url, this.proof);
    this.stream = stream;
    stream.onerror = () => this.lost(stream);
    stream.onmessage = (event) => this.deliver(stream, event.data);
    stream.addEventListener("ready", () => {
      if (stream !== this.stream) return;
      this.wait = firstWait;
      this.open = true;
      this.emit({ type: "ready" });
    });
    stream.addEventListener("cursor_too_old", (event) => {
      const { session_id, seq } = JSON.parse(event.data) as { session_id: string; seq: number };
      if (this.cursors.has(session_id)) this.cursors.set(session_id, seq);
      this.emit({ type: "too_old", session: session_id });
    });
    stream.addEventListener("behind", () => stream === this.stream && this.restart(0)); // the event's public name, words:ok
    stream.addEventListener("end", (event) => {
      if (stream !== this.stream) return;
      const { reason } = JSON.parse(event.data) as { reason: string };
      if (reason === "logout") {
        this.stop();
        this.emit({ type: "logout" });
      } else this.lost(stream);
    });
  }

  // There is one way back from every loss, refusals included.
  private lost(stream: Stream): void {
    if (stream !== this.stream) return;
    this.emit({ type: "offline" });
    this.restart(this.wait);
    this.wait = Math.min(this.wait * 2, longestWait);
  }

  private deliver(stream: Stream, data: string): void {
    if (stream !== this.stream) return;
    const event = JSON.parse(data) as ServerEvent;
    if (event.seq !== undefined && event.session_id && this.cursors.has(event.session_id)) this.cursors.set(event.session_id, event.seq);
    if (event.type === "item.delta") return; // the chat stream carries the text
    for (const [line, watched] of this.lines) {
      if (event.seq === undefined || !event.session_id || watched.has(event.session_id) || coarse(event.type)) line.send({ type: "event", event });
    }
  }

  private emit(message: FromHub): void {
    for (const line of this.lines.keys()) line.send(message);
  }
}

const coarse = (type: string): boolean => type.startsWith("session.") || type.startsWith("human_loop.") || type === "run.started" || type === "run.ended";
