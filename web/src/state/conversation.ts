import { Chat } from "@ai-sdk/react";
import { get, post, Problem, query, request, silent, uuid } from "../api/http";
import type { ChatMessage, ChatMessages, Fork, Question, Reply, ServerEvent, Session, Snapshot } from "../api/types";
import { listen, watch } from "../events/client";
import { t } from "../i18n";
import { emptySide, fold, fromSnapshot, type Side } from "./fold";
import { Keeper, newChatIDs } from "./keep";
import { merge, older } from "./merge";
import { arrived, giveBack, isRefusal, learn, type Message, type Outbox, take, takeAside, unsure, type Why } from "./outbox";
import { readPast } from "./past";
import { setPrefs } from "./prefs";
import { Queued } from "./queued";
import { go } from "./route";
import { type Chosen, wireOf } from "./source";
import { Store } from "./store";
import { chatTransport, type Settings } from "./transport";

export interface History {
  /** deleted: it was there, and somewhere else it was deleted. */
  state: "idle" | "loading" | "older" | "missing" | "deleted" | "error";
  /** Where the pages before this one begin. */
  cursor?: string;
  problem?: Problem;
}

const page = 12; // runs
const largest = 16 * 1024 * 1024 - 64 * 1024; // bytes of a message that thole accepts, less what stands around it
const hiddenFor = 4000;
const retryWaits = [300, 800, 2000, 4000, 8000];

/**
 * Conversation is one session on one page: its messages (through the AI SDK's chat), what stands next to them, and the
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
  /** box is what was written here and what thole does not have yet. */
  readonly box: Store<Outbox>;
  readonly queued: Queued;

  private undo: (() => void)[] = [];
  private closed = false;
  private following?: () => void;
  private catching?: Promise<void>;
  private again = false;
  private retries = 0;
  private timer?: ReturnType<typeof setTimeout>;
  /** sending is the last message on its way; it knows whether that got through. */
  private sending?: Promise<boolean>;
  /** taken is called when thole has what is being posted; unset: nothing is. */
  private taken?: () => void;
  /** retrying is the message that is said again, and the id under which it goes out until it is there. */
  private retrying?: { of: string; id: string };
  /** landed are messages that thole is known to have. */
  private landed = new Set<string>();
  /** begun: a first message was tried before, so that the session may exist. */
  private begun = false;
  /** astray: the facts after a cursor that was too old could not be asked for yet. */
  private astray = false;
  /** pastMissing: what the panels want to know of the past could not be read yet. */
  private pastMissing = false;

  constructor(
    readonly id: string,
    private draft: boolean,
  ) {
    this.chat = new Chat<ChatMessage>({
      id,
      generateId: uuid,
      transport: chatTransport(
        () => this.settings,
        () => this.taken?.(),
      ),
      onFinish: ({ isDisconnect, isError }) => {
        this.replaying.set(false);
        if (isDisconnect) this.retryLater();
        else if (!isError) void this.catchUp();
      },
    });
    this.queued = new Queued(id);
    const keeper = new Keeper(id);
    this.box = new Store(keeper.load());
    this.box.subscribe(() => keeper.save(this.box.get(), this.draft));
  }

  get isDraft(): boolean {
    return this.draft;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  private get busy(): boolean {
    return this.chat.status === "submitted" || this.chat.status === "streaming";
  }

  open(): () => void {
    this.closed = false;
    this.undo.push(
      listen({
        event: (event) => event.session_id === this.id && this.react(event),
        ready: () => void this.resync(),
        tooOld: (session) => {
          if (session !== this.id) return;
          this.astray = true;
          void this.catchUp();
        },
      }),
    );
    const seen = () => this.visibility();
    document.addEventListener("visibilitychange", seen);
    this.undo.push(() => document.removeEventListener("visibilitychange", seen));
    if (!this.draft) void this.load();
    else void this.settle();
    return () => this.close();
  }

  private close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.following?.();
    this.following = undefined;
    for (const undo of this.undo.splice(0)) undo();
    // A message on its way is not cut off: posted ends the stream once thole has it.
    if (!this.taken) void this.chat.stop();
  }

  async load(): Promise<void> {
    this.history.set({ state: "loading" });
    try {
      const [, first] = await Promise.all([this.follow(), this.newest(page)]);
      this.chat.messages = merge(this.chat.messages, first.items);
      this.history.set({ state: "idle", cursor: first.next });
      void this.catchUp();
      void this.background();
      void this.settle();
    } catch (error) {
      const problem = error as Problem;
      this.history.set({ state: problem.status === 404 ? "missing" : "error", problem });
    }
  }

  /** resync is for a line that came back: whatever could not be read while it was down is read now. */
  private async resync(): Promise<void> {
    if (this.history.get().state === "error") return this.load();
    if (this.history.get().problem) this.history.set((old) => ({ ...old, problem: undefined }));
    if (this.pastMissing) void this.background();
    await this.catchUp();
    await this.settle();
  }

  /** follow reads one consistent view and then every fact after it. */
  private async follow(): Promise<void> {
    const snapshot = await get<Snapshot>(`/sessions/${this.id}/snapshot`);
    this.side.set((old) => fromSnapshot(snapshot, old));
    if (this.closed) return;
    this.following?.();
    this.following = watch(this.id, snapshot.seq);
  }

  private async background(): Promise<void> {
    this.pastMissing = !(await readPast(this.id, this.side));
  }

  private newest = (limit: number): Promise<ChatMessages> => get(`/sessions/${this.id}/messages${query({ order: "desc", limit })}`);

  async loadOlder(limit = page): Promise<void> {
    const { cursor, state } = this.history.get();
    if (!cursor || state !== "idle") return;
    this.history.set({ state: "older", cursor });
    try {
      const next = await get<ChatMessages>(`/sessions/${this.id}/messages${query({ order: "desc", limit, cursor })}`);
      this.chat.messages = older(this.chat.messages, next.items);
      this.history.set({ state: "idle", cursor: next.next });
    } catch (error) {
      this.history.set({ state: "idle", cursor, problem: error as Problem });
    }
  }

  private get gone(): boolean {
    return this.history.get().state === "missing" || this.history.get().state === "deleted";
  }

  /** vanish is for a chat that is no more: it says so, and nothing that is sent from here makes it again. */
  private vanish(): void {
    if (this.gone) return;
    clearTimeout(this.timer);
    this.following?.();
    this.following = undefined;
    this.history.set({ state: "deleted" });
    void this.chat.stop();
  }

  private react(event: ServerEvent): void {
    if (event.type === "session.deleted") return this.vanish();
    if (event.type === "session.reverted") {
      this.chat.messages = [];
      return void this.load();
    }
    const before = this.side.get();
    this.side.set(fold(before, event));
    if (event.type === "run.started") this.has(event.data.client_id);
    if (event.type === "queue.added") this.has(event.data.message?.client_id);
    if (this.draft || this.side.get() === before) return;
    if (event.type === "run.started" || event.type === "run.ended") void this.catchUp();
  }

  /** catchUp reads what happened without us and joins the answer that is being given, unless we are already in it. */
  catchUp(): Promise<void> {
    if (this.draft || this.gone || this.history.get().state === "loading") return Promise.resolve();
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
      if (this.astray) await this.follow();
      this.astray = false;
      const latest = await this.newest(2);
      if (this.busy || this.closed) return;
      this.chat.messages = merge(this.chat.messages, latest.items);
      for (const message of latest.items) this.has(message.metadata?.client_id);
    } catch (error) {
      const { status } = error as Problem;
      if (status === 404) this.vanish();
      if (status === 0 || status >= 500) this.retryLater();
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
    const { error } = this.chat;
    // A stream that could not be joined says nothing about the run: it is no failure that a new run would mend.
    if (error instanceof Problem) this.chat.clearError();
    if (error instanceof Problem || error instanceof TypeError) return this.retryLater();
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
    else this.timer = setTimeout(() => this.busy && !this.taken && void this.chat.stop(), hiddenFor);
  }

  /**
   * submit sends what stands in the field: it starts a run, waits for its turn after a run, or goes into it. It returns why
   * the message came back, or nothing once thole has it.
   */
  submit = (how: How, start: Start): Promise<Why | undefined> => this.dispatch(take(this.box.get()), how, start);

  /** resend tries a message again that stands aside. */
  resend = (id: string, start: Start): Promise<Why | undefined> => this.dispatch(takeAside(this.box.get(), id), "send", start);

  private async dispatch(taken: ReturnType<typeof take>, how: How, start: Start): Promise<Why | undefined> {
    if (!taken) return undefined;
    const [box, message, before] = taken;
    this.box.set(box);
    underWay.set(this.id, this);
    // One after the other: what was written after a message that comes back is not sent ahead of it.
    const earlier = this.sending;
    const outcome = (async (): Promise<Why | undefined> => {
      if (earlier && !(await earlier)) return { state: "after" };
      return this.attempt(message, how, start, before);
    })();
    const through = outcome.then((why) => why === undefined);
    this.sending = through;
    const why = await outcome;
    if (this.sending === through) this.sending = undefined;
    if (why) this.box.set((now) => giveBack(now, message.id, why));
    else this.has(message.id);
    if (this.box.get().under.length === 0) underWay.delete(this.id);
    return why;
  }

  private async attempt(message: Message, how: How, start: Start, before?: Why): Promise<Why | undefined> {
    try {
      // Also one that was not there may have come since, and a key holds only for the same way of sending.
      if ((before?.state === "unknown" || before?.state === "absent") && (await this.isThere(message.id))) return void this.catchUp();
      await this.deliver(message, how, start);
      return undefined;
    } catch (error) {
      const problem = problemFrom(error);
      if (this.landed.has(message.id)) return undefined;
      // A conflict may be with the first attempt itself, whose end a crash of the server left open; a budget's refusal is one only by its number.
      const conflict = problem.status === 409 && problem.code !== "budget_exceeded";
      if (problem.status === 404 && !this.draft) this.vanish();
      if (isRefusal(problem) && !conflict) return { state: "refused", text: problem.message, hint: problem.hint, code: problem.code };
      const why = await this.lookFor(message.id, problem);
      return why && conflict ? { ...why, spent: why.state === "absent" } : why;
    }
  }

  private async deliver(message: Message, how: How, start: Start): Promise<void> {
    const weight = message.files.reduce((sum, file) => sum + file.url.length, new Blob([message.text]).size);
    if (weight > largest) throw new Problem(t("unsent.large"), 413, "invalid");
    if (this.draft) await this.make(start(), message.text);
    if (how === "steer") await this.queued.steer(message, this.side.get().session?.active_run_id);
    else if (this.busy || this.side.get().session?.active_run_id) await this.queued.add(message);
    else await this.transmit(message);
  }

  /** make makes the session of a new chat. One that an earlier attempt made gets what was chosen since. */
  private async make({ chosen, ...settings }: Beginning, text: string): Promise<void> {
    await post<Session>("/sessions", { id: this.id, source: wireOf(chosen, text), ...settings }, `new-${this.id}`);
    if (chosen && chosen.kind !== "upload") setPrefs({ source: chosen });
    if (this.begun) await request("PATCH", `/sessions/${this.id}`, { body: settings });
    this.begun = true;
    await this.follow();
    this.isMade();
  }

  private isMade(): void {
    this.draft = false;
    this.box.set((old) => ({ ...old, effort: undefined, source: undefined }));
    if (!this.closed) go({ page: "chat", id: this.id }, true);
  }

  private async transmit(message: Message): Promise<void> {
    const parts = [...message.files, ...(message.text ? [{ type: "text" as const, text: message.text }] : [])];
    try {
      await this.posted(() => this.chat.sendMessage({ id: message.id, role: "user", parts }));
    } catch (error) {
      this.chat.messages = this.chat.messages.filter((it) => it.id !== message.id);
      // Another client was faster: what was written waits for its turn.
      if (!(error instanceof Problem && error.code === "busy")) throw error;
      await this.queued.add(message);
      void this.catchUp();
    }
  }

  /** posted waits until thole has what send posts, and fails when it does not; the answer streams on after it. */
  private async posted(send: () => Promise<void>): Promise<void> {
    let has = false;
    const taken = new Promise<void>((done) => {
      this.taken = () => {
        has = true;
        done();
      };
    });
    await Promise.race([taken, send()]);
    this.taken = undefined;
    if (this.closed) void this.chat.stop();
    if (has) return;
    const { error } = this.chat;
    this.chat.clearError();
    throw error ?? silent();
  }

  /** lookFor asks what became of a message that got no clear answer. */
  private async lookFor(id: string, problem: Problem): Promise<Why | undefined> {
    try {
      if (await this.isThere(id)) return void this.catchUp();
      return { state: "absent", text: problem.status ? problem.message : undefined, hint: problem.status ? problem.hint : undefined };
    } catch {
      return { state: "unknown", text: problem.message, hint: problem.hint };
    }
  }

  /** isThere reads the queue before the messages: what moves from one to the other meanwhile is seen. */
  private async isThere(id: string): Promise<boolean> {
    try {
      const { queue } = await get<Snapshot>(`/sessions/${this.id}/snapshot`);
      if (queue.some((it) => it.client_id === id)) return true;
      const { items } = await this.newest(page);
      return items.some((it) => it.metadata?.client_id === id || it.parts.some((part) => part.type === "data-steer" && part.data.client_id === id));
    } catch (error) {
      if ((error as Problem).status === 404) return false;
      throw error;
    }
  }

  /** settle asks again for messages of which nobody knows whether they arrived. */
  private async settle(): Promise<void> {
    for (const { id, why } of unsure(this.box.get())) {
      const now = await this.lookFor(id, new Problem(why.text ?? "", 0, "unavailable", why.hint));
      if (now) {
        this.box.set((box) => learn(box, id, now));
        continue;
      }
      this.has(id);
      if (!this.draft) continue;
      this.isMade();
      await this.load();
    }
  }

  /** has notes that thole has a message. */
  private has(id: string | undefined): void {
    if (!id) return;
    this.landed.add(id);
    this.box.set((box) => arrived(box, id));
  }

  /** branch goes on from an earlier moment in a chat of its own, and opens that; this one stays as it is. */
  async branch(how: Fork): Promise<void> {
    const made = await post<Session>(`/sessions/${this.id}/fork`, how, uuid());
    if (!this.closed) go({ page: "chat", id: made.id });
  }

  /**
   * retry says the last user message again. The log keeps both runs, and so does the page. A retry that nobody answered may
   * be repeated: until the history shows the new run it goes out under the same key.
   */
  async retry(): Promise<void> {
    const before = this.chat.messages;
    const last = before.findLast((message) => message.role === "user");
    if (!last || this.taken) return;
    if (this.chat.status === "error") this.chat.clearError();
    const answered = before.at(-1)?.role === "assistant";
    if (this.retrying?.of !== last.id) this.retrying = { of: last.id, id: uuid() };
    const { id } = this.retrying;
    try {
      if (!answered) this.chat.messages = before.filter((it) => it !== last);
      await this.posted(() => this.chat.sendMessage({ id, role: "user", parts: last.parts }));
    } catch (error) {
      this.chat.messages = before;
      void this.catchUp();
      const problem = problemFrom(error);
      throw isRefusal(problem) ? problem : new Problem(problem.message, problem.status, problem.code, t("unsent.unknownRetry"));
    }
  }

  /** stop asks the server: closing the stream alone would only stop us from watching. */
  async stop(): Promise<void> {
    const runs = () => this.chat.status === "streaming" || this.side.get().session?.active_run_id !== undefined;
    // A run that the server has not begun cannot be stopped yet: wait for the message on its way, and for news of the run.
    if (!runs()) await this.sending;
    while (!runs() && this.chat.status === "submitted") await new Promise((soon) => setTimeout(soon, 50));
    // A stream that was cut, or news that is late, says nothing of the run: the server knows.
    const known = runs();
    try {
      await post(`/api/chat/${encodeURIComponent(this.id)}/stop`);
    } catch (error) {
      if (known || !(error instanceof Problem && error.status === 404)) throw error; // the chat was never begun
    }
  }

  reply = async (question: Question, reply: Reply): Promise<void> => {
    const settled = await post<Question>(`/runs/${question.run_id}/human-loop/${question.question_id}/reply`, reply);
    this.side.set((old) => ({ ...old, questions: old.questions.map((it) => (it.question_id === settled.question_id ? settled : it)) }));
  };
}

type How = "send" | "steer";
/** Beginning is what a new chat starts with. */
export type Beginning = Partial<Session> & { chosen?: Chosen };
type Start = () => Beginning;

const problemFrom = (error: unknown): Problem => (error instanceof Problem ? error : silent());

/** underWay are conversations with a message on its way: a user who comes back to one finds it as it is. */
const underWay = new Map<string, Conversation>();

/** conversationOf is the conversation of a chat; without a chat, one that was begun in this tab, or a new one. */
export function conversationOf(chat: string | undefined): Conversation {
  if (chat !== undefined) return underWay.get(chat) ?? new Conversation(chat, false);
  return new Conversation(newChatIDs().findLast((id) => !underWay.has(id)) ?? uuid(), true);
}
