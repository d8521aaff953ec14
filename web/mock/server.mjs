// A server for developing the UI without an agent: `npm run mock`, then `npm run dev`. It keeps everything in memory, plays
// one scripted answer, and serves dist as well, so that a browser can look at a build. It is not part of the product.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createReadStream, existsSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { longThread, providers, script } from "./script.mjs";

const port = Number(process.env.PORT ?? 7799);
const dist = new URL("../dist", import.meta.url).pathname;
const sessions = new Map();
const listeners = new Set();
const now = () => new Date().toISOString();
const idle = { loaded: true, active: false, waiting_on_approval: false, waiting_on_input: false, system_error: false };

function makeSession(fields = {}) {
  const s = {
    session: { id: randomUUID(), name: "", preview: "", provider: "codex", execution_profile: "ask", dir: "/home/dev/shop", archived: false, created_at: now(), updated_at: now(), seq: 0, floor: 0, runs: 0, status: { ...idle }, usage: { input: 0, output: 0 }, ...fields },
    messages: [], questions: [], todos: [], todoEvents: [], queue: [], runs: [], chunks: undefined, readers: new Set(), waiting: undefined, stop: false, jobs: [], batches: [],
  };
  sessions.set(s.session.id, s);
  return s;
}

function emit(s, type, data, run_id, ephemeral) {
  const event = { type, session_id: s.session.id, run_id, ts: now(), data };
  if (!ephemeral) Object.assign(event, { id: randomUUID(), seq: ++s.session.seq });
  if (type !== "session.status") s.session.updated_at = event.ts;
  for (const listener of listeners) listener(event);
}

const status = (s, change) => {
  s.session.status = { ...s.session.status, ...change };
  emit(s, "session.status", { status: s.session.status }, undefined, true);
};

function chunk(s, value) {
  s.chunks.push(value);
  for (const res of s.readers) res.write(`data: ${JSON.stringify(value)}\n\n`);
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function runScript(s, message, speed) {
  const text = message.parts.map((p) => p.text ?? "").join("");
  const run = { id: randomUUID(), session_id: s.session.id, number: ++s.session.runs, seq: s.session.seq, phase: "queued", input: [{ type: "text", text }], client_id: message.id, provider: s.session.provider, model: "gpt-5.3-codex", execution_profile: s.session.execution_profile, usage: { input: 0, output: 0 }, executor_id: "local-7f3a", trace_id: randomUUID().slice(0, 8), created_at: now() };
  s.runs.push(run);
  s.session.active_run_id = run.id;
  s.session.preview ||= text.slice(0, 120);
  s.stop = false;
  s.chunks = [];
  const meta = { session_id: s.session.id, run_id: run.id, provider: run.provider, model: run.model, created_at: run.created_at, seq: s.session.seq };
  const answer = { id: run.id, role: "assistant", metadata: meta, parts: [] };
  s.messages.push({ id: randomUUID(), role: "user", metadata: { run_id: run.id, client_id: message.id, created_at: run.created_at }, parts: message.parts });
  s.messages.push(answer);
  emit(s, "run.started", { input: run.input, client_id: message.id, settings: {} }, run.id);
  status(s, { active: true });
  chunk(s, { type: "start", messageId: run.id, messageMetadata: meta });
  const phase = (to) => {
    run.phase = to;
    if (to === "running") run.started_at ??= now();
    emit(s, "run.status", { phase: to }, run.id);
    chunk(s, { type: "data-phase", id: run.id, data: { run_id: run.id, phase: to, since: now() }, transient: true });
  };
  const io = {
    speed, phase, sleep: (ms) => sleep(ms * speed), stopped: () => s.stop, chunk: (c) => chunk(s, c), part: (p) => answer.parts.push(p), session: s.session,
    todos: (todos) => {
      s.todos = todos;
      const event = { id: randomUUID(), seq: s.session.seq + 1, run_id: run.id, ts: now(), type: "todo.snapshot", todos };
      s.todoEvents.push(event);
      emit(s, "todo.snapshot", { todos }, run.id);
      const data = { todos, changes: s.todoEvents.length };
      const old = answer.parts.find((p) => p.type === "data-todo");
      if (old) old.data = data;
      else answer.parts.push({ type: "data-todo", id: "todo", data });
      chunk(s, { type: "data-todo", id: "todo", data });
    },
    ask: async (fields) => {
      const question = { question_id: randomUUID(), session_id: s.session.id, run_id: run.id, state: "pending", asked_at: now(), deadline: new Date(Date.now() + 15 * 60e3).toISOString(), ...fields };
      s.questions.push(question);
      run.waiting_on = question.question_id;
      if (fields.item_id) chunk(s, { type: "tool-approval-request", approvalId: question.question_id, toolCallId: fields.item_id });
      chunk(s, { type: "data-ask", id: question.question_id, data: question });
      const part = { type: "data-ask", id: question.question_id, data: question };
      answer.parts.push(part);
      phase("waiting_human");
      status(s, fields.kind === "input" ? { waiting_on_input: true } : { waiting_on_approval: true });
      emit(s, "human_loop.requested", { question }, run.id);
      const reply = await new Promise((done) => (s.waiting = { question, done }));
      Object.assign(question, { state: reply ? "answered" : "canceled", answer: reply, answered_by: "dev", resolved_at: now() });
      emit(s, "human_loop.resolved", { question_id: question.question_id, state: question.state, answer: reply, answered_by: "dev" }, run.id);
      if (fields.item_id) chunk(s, { type: "tool-approval-response", approvalId: question.question_id, approved: reply?.decision === "allow" || reply?.decision === "always" });
      chunk(s, { type: "data-ask", id: question.question_id, data: { ...question } });
      status(s, { waiting_on_approval: false, waiting_on_input: false });
      phase("running");
      return reply;
    },
  };
  for (const p of ["claimed", "preparing", "running"]) {
    phase(p);
    await io.sleep(60);
  }
  await script(io, text);
  const outcome = s.stop ? "interrupted" : /fail/.test(text) ? "failed" : "completed";
  run.usage = { input: 18400, output: 1260, cache_read: 12100, context_window: 272000, last: { input: 9200, output: 630, cache_read: 6050 } };
  Object.assign(run, { outcome, ended_at: now(), phase: { interrupted: "canceled", failed: "failed", completed: "succeeded" }[outcome] });
  const error = outcome === "failed" ? { code: "rate_limit", message: "The model service answered 429", hint: "wait a minute, then retry", status: 429 } : undefined;
  if (error) {
    answer.parts.push({ type: "data-error", id: "error", data: error });
    chunk(s, { type: "data-error", id: "error", data: error });
  }
  answer.metadata = { ...meta, ended_at: run.ended_at, outcome, usage: run.usage };
  chunk(s, { type: "finish", finishReason: outcome === "completed" ? "stop" : "other", messageMetadata: answer.metadata });
  for (const res of s.readers) res.end("data: [DONE]\n\n");
  s.readers.clear();
  s.chunks = undefined;
  delete s.session.active_run_id;
  emit(s, "run.ended", { outcome, error, usage: run.usage }, run.id);
  status(s, { active: false });
  if (s.queue.length && !s.stop) startQueued(s, s.queue[0], speed);
}

function startQueued(s, message, speed = 1) {
  s.queue = s.queue.filter((m) => m !== message);
  emit(s, "queue.removed", { message_id: message.id });
  void runScript(s, { id: message.id, parts: message.input.map((i) => ({ type: "text", text: i.text })) }, speed);
}

function seed() {
  const names = ["Checkout rounding bug", "Upgrade the build image", "Explain the delivery ledger", "Flaky websocket test"];
  names.forEach((name, i) => {
    const at = new Date(Date.now() - (i + 1) * 19 * 3600e3).toISOString();
    makeSession({ name, provider: ["claude", "codex", "opencode", "codex"][i], updated_at: at, created_at: at });
  });
  const long = makeSession({ name: "Long thread", updated_at: new Date(Date.now() - 9 * 864e5).toISOString() });
  long.messages = longThread(Number(process.env.LONG ?? 10000), long.session.id);
  long.session.runs = long.messages.length / 2;
  const jobs = makeSession({ name: "Nightly release", updated_at: new Date(Date.now() - 3600e3).toISOString() });
  const id = jobs.session.id;
  jobs.jobs = [
    { job_id: randomUUID(), source_thread_id: id, target_kind: "thole", status: "running", task_kind: "command", task_summary: "make integration", created_at: new Date(Date.now() - 95e3).toISOString() },
    { job_id: randomUUID(), source_thread_id: id, target_kind: "thole", status: "failed", task_kind: "command", task_summary: "npm run e2e", result_summary: "3 of 212 specs failed: cart.spec.ts, login.spec.ts, totals.spec.ts", exit_code: 1, batch_id: "b1", created_at: new Date(Date.now() - 4000e3).toISOString(), completed_at: new Date(Date.now() - 3300e3).toISOString() },
  ];
  jobs.batches = [{ batch_id: "b1", source_thread_id: id, head: true, state: "materialized", summary: "npm run e2e (failed)", first_ready_at: now(), delivery_attempt_count: 1, max_delivery_attempts: 3, replay_policy: "manual_resolution_only", held_for: "acceptance_unknown", delivery_mode: "cli_turn_start",
    ledger: [{ at: new Date(Date.now() - 3300e3).toISOString(), actor: "dev", via: "cli", event: "job.completed", to: "failed" }, { at: new Date(Date.now() - 3299e3).toISOString(), actor: "thole", via: "daemon", event: "attempt.prepared", from: "", to: "prepared", proof: { generation: "4" } }, { at: new Date(Date.now() - 3290e3).toISOString(), actor: "thole", via: "daemon", event: "batch.held", from: "automatic", to: "manual_resolution_only", proof: { rpc: "acceptance_unknown" } }] }];
}
if (!process.env.EMPTY) seed();

const json = (res, code, body, headers = {}) => res.writeHead(code, { "content-type": "application/json", ...headers }).end(body === undefined ? undefined : JSON.stringify(body));
const sse = { "content-type": "text/event-stream", "cache-control": "no-cache", "x-vercel-ai-ui-message-stream": "v1" };
const csp = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
let loggedIn = process.env.LOGIN !== "1";

const body = (req) => new Promise((done) => {
  let text = "";
  req.on("data", (d) => (text += d)).on("end", () => done(text ? JSON.parse(text) : {}));
});

function page(list, url) {
  const limit = Number(url.searchParams.get("limit") ?? 50);
  const end = Number(url.searchParams.get("cursor") ?? list.length);
  const from = Math.max(0, end - limit * 2);
  return { items: list.slice(from, end), ...(from > 0 && { next: String(from) }) };
}

async function api(req, res, url) {
  const at = url.pathname.split("/").slice(1);
  const input = req.method === "GET" ? {} : await body(req);
  if (at[0] === "auth") {
    if (at[1] === "login") loggedIn = input.token === "thole_demo";
    if (at[1] === "logout") loggedIn = false;
    return loggedIn ? json(res, 200, { user: { id: "u", login: "dev" }, via: "cookie", id: "l", scope: "admin", proof: "demo" }) : json(res, 401, { title: "Unauthorized", detail: "this token is not known here", code: "unauthorized", hint: "make one with `thole token create`" });
  }
  if (!loggedIn) return json(res, 401, { title: "Unauthorized", code: "unauthorized" });
  if (at[0] === "providers") return json(res, 200, providers(process.env.EMPTY === "2"));
  if (at[0] === "events") return events(res, url);
  if (at[0] === "batches") {
    const all = [...sessions.values()].flatMap((s) => s.batches);
    if (at[2] === "close") {
      const batch = all.find((b) => b.batch_id === at[1]);
      Object.assign(batch, { state: "closed", close_reason: input.reason });
      return json(res, 200, batch);
    }
    return at[1] ? json(res, 200, all.find((b) => b.batch_id === at[1])) : json(res, 200, { items: all.filter((b) => b.source_thread_id === url.searchParams.get("session_id")) });
  }
  if (at[0] === "runs") {
    const s = [...sessions.values()].find((it) => it.runs.some((r) => r.id === at[1]));
    if (at[2] === "human-loop") {
      const { question, done } = s.waiting;
      done(input);
      return json(res, 200, { ...question, state: "answered", answer: input, answered_by: "dev", resolved_at: now() });
    }
    if (at[2] === "steer") {
      chunk(s, { type: "data-steer", id: randomUUID(), data: { text: input.input.map((i) => i.text).join("") } });
      return json(res, 202, s.runs.at(-1));
    }
  }
  if (at[0] === "api") {
    const id = at[2] ?? input.id;
    const s = sessions.get(id) ?? makeSession({ id });
    if (at[3] === "stop") {
      s.stop = true;
      if (s.session.active_run_id) emit(s, "run.interrupt_requested", {}, s.session.active_run_id);
      s.waiting?.done(undefined);
      return json(res, 204);
    }
    if (at[3] === "stream") {
      if (!s.chunks) return json(res, 204);
      res.writeHead(200, sse);
      for (const c of s.chunks) res.write(`data: ${JSON.stringify(c)}\n\n`);
      s.readers.add(res);
      return req.on("close", () => s.readers.delete(res));
    }
    if (s.session.active_run_id) return res.writeHead(409, { "x-thole-code": "busy" }).end("a run is going on");
    res.writeHead(200, sse);
    s.readers.add(res);
    res.on("close", () => s.readers.delete(res));
    return void runScript(s, input.messages[0], Number(process.env.SPEED ?? 1));
  }
  if (at[0] !== "sessions") return json(res, 404, { title: "not found", code: "not_found" });
  if (!at[1]) {
    if (req.method === "POST") return json(res, 201, (sessions.get(input.id) ?? makeSession(input)).session);
    const search = url.searchParams.get("search")?.toLowerCase() ?? "";
    const items = [...sessions.values()].map((s) => s.session).filter((s) => s.archived === (url.searchParams.get("archived") === "true") && `${s.name} ${s.preview}`.toLowerCase().includes(search));
    return json(res, 200, { items: items.sort((a, b) => b.updated_at.localeCompare(a.updated_at)) });
  }
  const s = sessions.get(at[1]);
  if (!s) return json(res, 404, { title: "Not found", detail: "there is no such session", code: "not_found" });
  if (!at[2]) {
    if (req.method === "DELETE") {
      sessions.delete(at[1]);
      emit(s, "session.deleted", {});
      return json(res, 204);
    }
    if (req.method === "PATCH") {
      Object.assign(s.session, input);
      emit(s, "session.updated", { name: input.name, archived: input.archived });
    }
    return json(res, 200, s.session);
  }
  switch (at[2]) {
    case "snapshot":
      return json(res, 200, { session: s.session, seq: s.session.seq, active_run: s.session.active_run_id ? s.runs.at(-1) : undefined, questions: s.questions.filter((q) => q.state === "pending"), todos: s.todos, queue: s.queue });
    case "messages":
      return json(res, 200, page(s.messages, url));
    case "runs":
      return json(res, 200, { items: s.runs.slice(-1) });
    case "human-loop":
      return json(res, 200, { items: s.questions });
    case "jobs":
      return json(res, 200, { items: s.jobs });
    case "files":
      return json(res, 200, { state: "saved", saved_at: now(), tried_at: now(), reason: "run.finished" });
    case "todos":
      return json(res, 200, { items: at[3] ? s.todoEvents : s.todos });
    case "queue":
      return queue(req, res, s, at, input);
  }
  return json(res, 404, { title: "not found", code: "not_found" });
}

function queue(req, res, s, at, input) {
  const message = s.queue.find((m) => m.id === at[3]);
  if (req.method === "POST" && !at[3]) {
    const added = { id: randomUUID(), session_id: s.session.id, input: input.input, created_at: now() };
    s.queue.push(added);
    emit(s, "queue.added", { message: added });
    return json(res, 201, added);
  }
  if (req.method === "PATCH") {
    message.input = input.input;
    emit(s, "queue.edited", { message });
    return json(res, 200, message);
  }
  if (req.method === "PUT") {
    s.queue.sort((a, b) => input.order.indexOf(a.id) - input.order.indexOf(b.id));
    emit(s, "queue.reordered", { order: input.order });
    return json(res, 200, { items: s.queue });
  }
  s.queue = s.queue.filter((m) => m !== message);
  emit(s, "queue.removed", { message_id: message.id });
  return json(res, req.method === "DELETE" ? 204 : 202, req.method === "DELETE" ? undefined : s.runs.at(-1));
}

function events(res, url) {
  const named = new Set((url.searchParams.get("sessions") ?? "").split(","));
  res.writeHead(200, sse).write(`: thole\n\nevent: ready\ndata: {"resumed":false,"sessions":{}}\n\n`);
  const listener = (event) => (named.has(event.session_id) || /^(session|run|human_loop)\./.test(event.type)) && res.write(`data: ${JSON.stringify(event)}\n\n`);
  listeners.add(listener);
  res.on("close", () => listeners.delete(listener));
}

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
createServer((req, res) => {
  const url = new URL(req.url, "http://localhost");
  if (/^\/(auth|sessions|runs|human-loop|jobs|batches|providers|events|api)(\/|$)/.test(url.pathname)) return void api(req, res, url);
  let file = join(dist, url.pathname);
  if (!existsSync(file) || statSync(file).isDirectory()) file = join(dist, "index.html");
  res.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream", "content-security-policy": csp });
  createReadStream(file).pipe(res);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
