import { Chat } from "@ai-sdk/react";
import type { FileUIPart } from "ai";
import { get, post, Problem, query, request, uuid } from "../api/http";
import type { ChatMessage, Page, Question, QueuedMessage, Reply, Run, ServerEvent, Session, Snapshot, TodoEvent } from "../api/types";
import { listen, watch } from "../events/client";
import { emptySide, fold, fromSnapshot, marksOf, type Side } from "./fold";
import { merge, older } from "./merge";
import { Store } from "./store";
import { chatTransport, type Settings } from "./transport";

export interface History {
  state: "idle" | "loading" | "older" | "missing" | "error";
  /** Where the pages before this one begin. */
  cursor?: string;
  problem?: Problem;
}

const page = 12; // runs
const hiddenFor = 4000;
const retryWaits = [300, 800, 2000, 4000, 8000];

/**
 * Conversation is one session on one page: its messages (through the AI SDK's chat), what stands beside them, and the
 * rules for staying in step with everybody else who talks to the same session.
 *
 * An answer is streamed only while the page can be seen, so that many tabs do not use up the browser's connections; what
 * happened meanwhile is read from the history.
 */
export class Conversation {
  readonly chat: Chat<ChatMessage>;
  readonly side = new Store<Side>(emptySide);
  readonly history = new Store<History>({ state: "idle" });
  /** replaying: an answer is being repeated from its start after a resume. */
  readonly replaying = new Store(false);
  /** settings go with every message, so that a change counts for the message after it. */
  settings: Settings = {};
  /** start is what a new session is made with, beyond its settings. */
  start: { dir?: string } = {};

  private undo: (() => void)[] = [];
  private closed = false;
  private following?: () => void;
  private catching?: Promise<void>;
  private again = false;
  private retries = 0;
  private timer?: ReturnType<typeof setTimeout>;

  constructor(
    readonly id: string,
    private draft: boolean,
  ) {
    this.chat = new Chat<ChatMessage>({
      id,
      generateId: uuid,
      transport: chatTransport(() => this.settings),
      onFinish: ({ isDisconnect, isError }) => {
        this.replaying.set(false);
        if (isDisconnect) this.retryLater();
        else if (!isError) void this.catchUp();
      },
    });
  }

  get isDraft(): boolean {
    return this.draft;
  }

  private get busy(): boolean {
    return this.chat.status === "submitted" || this.chat.status === "streaming";
  }

  open(): () => void {
    this.closed = false;
    this.undo.push(
      listen({
        event: (event) => event.session_id === this.id && this.react(event),
        ready: () => void this.catchUp(),
        tooOld: (session) => session === this.id && void this.follow().then(() => this.catchUp()),
      }),
    );
    const seen = () => this.visibility();
    document.addEventListener("visibilitychange", seen);
    this.undo.push(() => document.removeEventListener("visibilitychange", seen));
    if (!this.draft) void this.load();
    return () => this.close();
  }

  private close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.following?.();
    this.following = undefined;
    for (const undo of this.undo.splice(0)) undo();
    void this.chat.stop();
  }

  async load(): Promise<void> {
    this.history.set({ state: "loading" });
    try {
      const [, first] = await Promise.all([this.follow(), this.newest(page)]);
      this.chat.messages = merge(this.chat.messages, first.items);
      this.history.set({ state: "idle", cursor: first.next });
      void this.catchUp();
      void this.background();
    } catch (error) {
      const problem = error as Problem;
      this.history.set({ state: problem.status === 404 ? "missing" : "error", problem });
    }
  }

  /** follow reads one consistent view and then every fact after it. */
  private async follow(): Promise<void> {
    const snapshot = await get<Snapshot>(`/sessions/${this.id}/snapshot`);
    this.side.set((old) => fromSnapshot(snapshot, old));
    if (this.closed) return;
    this.following?.();
    this.following = watch(this.id, snapshot.seq);
  }

  // What the panels want to know of the past; nobody waits for it.
  private async background(): Promise<void> {
    const [runs, questions, todos] = await Promise.allSettled([
      get<Page<Run>>(`/sessions/${this.id}/runs?order=desc&limit=1`),
      get<Page<Question>>(`/sessions/${this.id}/human-loop?state=all`),
      get<Page<TodoEvent>>(`/sessions/${this.id}/todos/events?limit=200`),
    ]);
    this.side.set((old) => {
      const next = { ...old };
      if (runs.status === "fulfilled" && runs.value.items[0] && !old.run) {
        next.run = runs.value.items[0];
        next.phases = marksOf(next.run);
        next.lastError = next.run.error;
      }
      if (questions.status === "fulfilled") {
        const known = new Set(old.questions.map((it) => it.question_id));
        next.questions = [...questions.value.items.filter((it) => !known.has(it.question_id)), ...old.questions];
      }
      if (todos.status === "fulfilled") {
        const known = new Set(todos.value.items.map((it) => it.id));
        next.todoEvents = [...todos.value.items, ...old.todoEvents.filter((it) => !known.has(it.id))];
      }
      return next;
    });
  }

  private newest = (limit: number): Promise<Page<ChatMessage>> => get(`/sessions/${this.id}/messages${query({ order: "desc", limit })}`);

  async loadOlder(): Promise<void> {
    const { cursor, state } = this.history.get();
    if (!cursor || state !== "idle") return;
    this.history.set({ state: "older", cursor });
    try {
      const next = await get<Page<ChatMessage>>(`/sessions/${this.id}/messages${query({ order: "desc", limit: page, cursor })}`);
      this.chat.messages = older(this.chat.messages, next.items);
      this.history.set({ state: "idle", cursor: next.next });
    } catch (error) {
      this.history.set({ state: "idle", cursor, problem: error as Problem });
    }
  }

  private react(event: ServerEvent): void {
    const before = this.side.get();
    this.side.set(fold(before, event));
    if (this.draft || this.side.get() === before) return;
    if (event.type === "run.started" || event.type === "run.ended") void this.catchUp();
  }

  /** catchUp reads what happened without us and joins the answer that is being given, unless we are already in it. */
  catchUp(): Promise<void> {
    if (this.draft || this.history.get().state === "loading" || this.history.get().state === "missing") return Promise.resolve();
    if (this.catching) {
      this.again = true; // what is being read may be older than the news
      return this.catching;
    }
    this.catching = this.join().finally(() => {
      this.catching = undefined;
      if (!this.again) return;
      this.again = false;
      void this.catchUp();
    });
    return this.catching;
  }

  private async join(): Promise<void> {
    if (this.busy || this.closed) return;
    const lost = this.chat.status === "error" && !(this.chat.error instanceof Problem);
    try {
      const latest = await this.newest(2);
      if (this.busy || this.closed) return;
      this.chat.messages = merge(this.chat.messages, latest.items);
    } catch (error) {
      if ((error as Problem).status === 0) this.retryLater();
      return;
    }
    if (lost) this.chat.clearError();
    this.retries = 0;
    if (!this.side.get().session?.active_run_id || document.visibilityState === "hidden") return;
    this.replaying.set(true);
    void this.resume();
  }

  private async resume(): Promise<void> {
    await this.chat.resumeStream();
    // There may have been nothing left to stream when it began.
    if (!this.side.get().session?.active_run_id) void this.catchUp();
  }

  private retryLater(): void {
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.catchUp(), retryWaits[Math.min(this.retries++, retryWaits.length - 1)]);
  }

  private visibility(): void {
    clearTimeout(this.timer);
    if (document.visibilityState === "visible") void this.catchUp();
    else this.timer = setTimeout(() => this.busy && void this.chat.stop(), hiddenFor);
  }

  /** send starts a run, or queues the message when one is running. */
  async send(text: string, files: FileUIPart[], start: Partial<Session> = {}, made?: () => void): Promise<void> {
    if (this.draft) {
      await post<Session>("/sessions", { id: this.id, ...start }, `new-${this.id}`);
      await this.follow();
      this.draft = false;
      made?.();
    }
    const sent = this.chat.sendMessage(files.length ? { text, files } : { text });
    await sent;
    const { error } = this.chat;
    if (error instanceof Problem && error.code === "busy") await this.queueInstead(text, files);
  }

  // Somebody else was faster: what was written waits for its turn instead of being lost.
  private async queueInstead(text: string, files: FileUIPart[]): Promise<void> {
    this.chat.messages = this.chat.messages.slice(0, -1);
    this.chat.clearError();
    await this.queue(text, files);
    void this.catchUp();
  }

  private input = (text: string, files: FileUIPart[]) => [...(text ? [{ type: "text", text }] : []), ...files.map((file) => ({ type: "image", url: file.url }))];

  queue = (text: string, files: FileUIPart[]): Promise<QueuedMessage> => post(`/sessions/${this.id}/queue`, { input: this.input(text, files), start: true }, uuid());

  steer = (text: string, files: FileUIPart[]): Promise<Run> => post(`/runs/${this.side.get().session?.active_run_id}/steer`, { input: this.input(text, files), client_id: uuid() });

  editQueued = async (message: QueuedMessage, text: string): Promise<void> => {
    const images = message.input.filter((part) => part.type !== "text");
    await request("PATCH", `/sessions/${this.id}/queue/${message.id}`, { body: { input: [{ type: "text", text }, ...images] } });
  };

  removeQueued = async (message: QueuedMessage): Promise<void> => void (await request("DELETE", `/sessions/${this.id}/queue/${message.id}`));

  promoteQueued = (message: QueuedMessage): Promise<Run> => post(`/sessions/${this.id}/queue/${message.id}/promote`);

  startQueued = (message: QueuedMessage): Promise<Run> => post(`/sessions/${this.id}/queue/${message.id}/start`);

  orderQueue = async (order: string[]): Promise<void> => void (await request("PUT", `/sessions/${this.id}/queue/order`, { body: { order } }));

  /** retry runs the last user message again. The log keeps both runs, and so does the page. */
  async retry(): Promise<void> {
    const before = this.chat.messages;
    const last = before.findLast((message) => message.role === "user");
    if (!last) return;
    if (this.chat.status === "error") this.chat.clearError();
    const answered = before.at(-1)?.role === "assistant";
    const again = this.chat.regenerate();
    if (answered) this.chat.messages = [...before, { ...last, id: uuid(), metadata: undefined }];
    await again;
  }

  /** stop asks the server: closing the stream alone would only stop us from watching. */
  async stop(): Promise<void> {
    // A run that the server has not begun cannot be stopped yet: wait for its first word.
    while (this.chat.status === "submitted") await new Promise((soon) => setTimeout(soon, 50));
    await post(`/api/chat/${encodeURIComponent(this.id)}/stop`);
  }

  reply = async (question: Question, reply: Reply): Promise<void> => {
    const settled = await post<Question>(`/runs/${question.run_id}/human-loop/${question.question_id}/reply`, reply);
    this.side.set((old) => ({ ...old, questions: old.questions.map((it) => (it.question_id === settled.question_id ? settled : it)) }));
  };
}
