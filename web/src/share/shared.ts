import { Problem, problemOf, query, silent } from "../api/http";
import type { ChatMessage, SharedMessages, SharedSession } from "../api/types";
import type { Reading } from "../chat/context";
import { fetchStream } from "../events/stream";
import type { Stream } from "../events/hub";
import type { History } from "../state/conversation";
import { emptySide, type Side } from "../state/fold";
import { merge, older } from "../state/merge";
import { Store } from "../state/store";

const page = 12; // runs
const fewest = 3; // runs that are read again while something happens
const pause = 400; // ms between two readings
const waits = [500, 1000, 2000, 5000, 10_000];

export interface Seen {
  about?: SharedSession;
  messages: ChatMessage[];
  /** over: the link is unknown, revoked or expired. */
  over?: boolean;
  /** Why thole could not be asked; it is asked again. */
  problem?: Problem;
}

/**
 * Shared is the chat of a share link. Its token is sent to the three routes that take it and to nothing else. Events only say
 * that there is news: what is shown is read from the messages, which have the text that is being written, too.
 */
export class Shared implements Reading {
  readonly id = "shared";
  readonly shared = true;
  readonly side = new Store<Side>(emptySide);
  readonly history = new Store<History>({ state: "idle" });
  readonly seen = new Store<Seen>({ messages: [] });

  private stream?: Stream;
  private timer?: ReturnType<typeof setTimeout>;
  private ended = new AbortController();
  private seq = 0;
  private tries = 0;
  private reading = false;
  private again = false;

  constructor(private readonly token: string) {}

  get chat(): { messages: ChatMessage[] } {
    return this.seen.get();
  }

  private get headers(): Record<string, string> {
    return { "thole-share": this.token };
  }

  open(): () => void {
    this.ended = new AbortController();
    const seen = () => (document.visibilityState === "visible" ? void this.connect() : this.rest());
    document.addEventListener("visibilitychange", seen, { signal: this.ended.signal });
    void this.connect();
    return () => {
      this.ended.abort();
      this.rest();
    };
  }

  /** rest gives the connection back while nobody looks: a browser has few of them. */
  private rest(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.stream?.close();
    this.stream = undefined;
  }

  /** connect reads the newest and follows what comes after it. */
  private async connect(): Promise<void> {
    this.rest();
    const seq = await this.read(page);
    if (seq === undefined || this.ended.signal.aborted || this.stream || document.visibilityState === "hidden") return;
    const stream = fetchStream(`/shared/events${query({ after: seq })}`, "", this.headers);
    this.stream = stream;
    const lost = () => {
      if (this.stream !== stream) return;
      this.rest();
      this.later(() => this.connect(), waits[Math.min(this.tries++, waits.length - 1)]!);
    };
    stream.onmessage = () => this.later(() => this.news(), pause);
    stream.onerror = lost; // why, the next reading says
    stream.addEventListener("ready", () => (this.tries = 0));
    stream.addEventListener("cursor_too_old", lost);
    stream.addEventListener("end", ({ data }) => ((JSON.parse(data) as { reason?: string }).reason === "shutdown" ? lost() : void this.connect()));
  }

  private async news(): Promise<void> {
    const began = Date.now();
    await this.read(fewest);
    // A long answer takes long to read: most of the time is left to others.
    if (this.again) this.later(() => this.news(), Math.max(pause, 4 * (Date.now() - began)));
  }

  /** later does one thing after a while; what comes meanwhile is done with it, or after it. */
  private later(what: () => Promise<void>, ms: number): void {
    if (this.reading) this.again = true;
    if (this.timer !== undefined || this.reading || this.ended.signal.aborted) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void what();
    }, ms);
  }

  /** read lays the newest runs over what is there, and answers where the events after them begin. */
  private async read(limit: number): Promise<number | undefined> {
    const { signal } = this.ended;
    this.reading = true;
    this.again = false;
    try {
      const [about, latest] = await Promise.all([
        this.get<SharedSession>("/shared"),
        this.get<SharedMessages>(`/shared/messages${query({ order: "desc", limit })}`),
      ]);
      this.lay(about, latest);
      return latest.seq;
    } catch (error) {
      if (!signal.aborted) this.fail(error);
      return undefined;
    } finally {
      this.reading = false;
    }
  }

  private lay(about: SharedSession, latest: SharedMessages): void {
    if (latest.seq < this.seq) return; // a later reading was faster
    this.seq = latest.seq;
    const old = this.seen.get().messages;
    const known = new Set(old.map((it) => it.id));
    const joins = latest.items.some((it) => known.has(it.id));
    this.seen.set({ about, messages: joins ? merge(old, latest.items) : latest.items });
    if (!joins) this.history.set({ state: "idle", cursor: latest.next }); // the first page, or more happened than was read
  }

  private fail(error: unknown): void {
    const problem = error instanceof Problem ? error : silent();
    if (problem.status === 401 || problem.status === 404) {
      this.ended.abort();
      this.rest();
      this.seen.set({ messages: [], over: true });
      return;
    }
    this.seen.set((old) => ({ ...old, problem }));
    this.rest();
    this.reading = false;
    this.later(() => this.connect(), waits[Math.min(this.tries++, waits.length - 1)]!);
  }

  private async get<T>(path: string): Promise<T> {
    const response = await fetch(path, { headers: { accept: "application/json", ...this.headers }, signal: this.ended.signal });
    if (!response.ok) throw await problemOf(response, true);
    return (await response.json()) as T;
  }

  async loadOlder(limit = page): Promise<void> {
    const { cursor, state } = this.history.get();
    if (!cursor || state !== "idle") return;
    this.history.set({ state: "older", cursor });
    try {
      const next = await this.get<SharedMessages>(`/shared/messages${query({ order: "desc", limit, cursor })}`);
      this.seen.set((old) => ({ ...old, messages: older(old.messages, next.items) }));
      this.history.set({ state: "idle", cursor: next.next });
    } catch (error) {
      this.history.set({ state: "idle", cursor, problem: error instanceof Problem ? error : silent() });
    }
  }
}
