// The official client against a real server: what it parses, how it resumes, what
// it shows after an error. THOLE_URL and THOLE_TOKEN name the server.
import { test as nodeTest } from "node:test";
import assert from "node:assert/strict";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, readUIMessageStream } from "ai";
import { Chat } from "./plain.mjs";

// A test that waits for something that does not come fails by itself.
const test = (name, a, b) => (b ? nodeTest(name, { timeout: 15000, ...a }, b) : nodeTest(name, { timeout: 15000 }, a));

const base = process.env.THOLE_URL;
const headers = { Authorization: `Bearer ${process.env.THOLE_TOKEN}` };

const transport = (extra = {}, options = {}) =>
  new DefaultChatTransport({ api: `${base}/api/chat`, headers, body: { provider: "test", executionProfile: "full", ...extra }, ...options });

const user = (text, id = crypto.randomUUID()) => ({ id, role: "user", parts: [{ type: "text", text }] });

async function rest(method, path, body) {
  const res = await fetch(base + path, { method, headers: { ...headers, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const text = await res.text();
  assert.ok(res.ok, `${method} ${path}: ${res.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

// send streams one message and returns every state of the answer.
async function send(text, { chatId = crypto.randomUUID(), body = {}, onState } = {}) {
  const stream = await transport(body).sendMessages({ chatId, trigger: "submit-message", messages: [user(text)], abortSignal: undefined });
  let last;
  const errors = [];
  for await (const message of readUIMessageStream({ stream, onError: (e) => errors.push(e) })) {
    last = structuredClone(message);
    if (onState) await onState(last);
  }
  return { chatId, message: last, errors };
}

// What a run's time was spent on is known once its files are saved, after its stream.
const plain = (v) => {
  const message = JSON.parse(JSON.stringify(v));
  if (message.metadata) delete message.metadata.time;
  return message;
};
const part = (message, type) => message.parts.find((p) => p.type === type);

async function until(what, check) {
  const end = Date.now() + 10000;
  while (Date.now() < end) {
    const v = await check();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 20));
  }
  assert.fail(`waited too long for ${what}`);
}

test("every kind of part", async () => {
  const { chatId, message, errors } = await send(
    'sim: think let me see ;; say hello there ;; run echo one; echo two ;; write a.txt first\\n ;; edit a.txt first => second ;; call lookup {"url":"https://example.org/doc"} ;; todo [x] read | [~] write | test ;; note careful ;; usage in=10 out=5 ;; step ;; say done',
  );
  assert.deepEqual(errors, []);
  assert.equal(part(message, "reasoning").text, "let me see");
  assert.equal(part(message, "reasoning").state, "done");
  assert.deepEqual(message.parts.filter((p) => p.type === "text").map((p) => p.text), ["hello there", "done"]);
  const command = part(message, "tool-command");
  assert.equal(command.state, "output-available");
  assert.equal(command.input.command, "echo one; echo two");
  assert.equal(command.output.output, "one\ntwo\n");
  assert.equal(command.output.exit_code, 0);
  assert.ok(command.providerExecuted);
  const change = part(message, "tool-file_change");
  assert.equal(change.input.changes[0].path, "a.txt");
  assert.equal(message.parts.filter((p) => p.type === "tool-file_change").length, 2);
  const tool = part(message, "dynamic-tool");
  assert.equal(tool.toolName, "lookup");
  assert.equal(tool.state, "output-available");
  assert.equal(part(message, "source-url").url, "https://example.org/doc");
  assert.deepEqual(part(message, "data-todo").data.todos.map((t) => t.state), ["done", "doing", "todo"]);
  assert.equal(part(message, "data-note").data.text, "careful");
  assert.equal(part(message, "data-usage").data.input, 10);
  assert.ok(message.parts.filter((p) => p.type === "step-start").length >= 2);
  assert.equal(message.metadata.outcome, "completed");
  assert.equal(message.metadata.session_id, chatId);
  const history = await rest("GET", `/api/chat-history/${chatId}`);
  assert.deepEqual(plain(history.messages[1]), plain(message), "history is what was streamed");
});

test("a failed run", async () => {
  const { message, errors, chatId } = await send("sim: say before ;; http 429 slow down");
  assert.equal(errors.length, 1);
  assert.match(errors[0].message, /slow down/);
  assert.equal(part(message, "data-error").data.code, "rate_limit");
  assert.equal(message.metadata.outcome, "failed");
  const history = await rest("GET", `/api/chat-history/${chatId}`);
  assert.deepEqual(plain(history.messages[1]), plain(message));
});

test("a reset step", async () => {
  const { message, chatId } = await send("sim: say kept ;; step ;; say dropped ;; reset ;; say again");
  assert.deepEqual(message.parts.filter((p) => p.type === "text").map((p) => p.text), ["kept", "again"]);
  const history = await rest("GET", `/api/chat-history/${chatId}`);
  assert.deepEqual(plain(history.messages[1]), plain(message));
});

test("a command that is declined, one that fails", async () => {
  const { message } = await send("sim: run exit 3");
  assert.equal(part(message, "tool-command").output.exit_code, 3);
  let asked;
  const second = await send("sim: run echo no", {
    body: { executionProfile: "ask", approvals: "stream" },
    onState: async (m) => {
      const p = part(m, "tool-command");
      if (p?.state === "approval-requested" && !asked) {
        asked = p.approval.id;
        await rest("POST", `/runs/${m.id}/human-loop/${asked}/reply`, { decision: "deny", message: "not now" });
      }
    },
  });
  const p = part(second.message, "tool-command");
  assert.equal(p.state, "output-denied");
  assert.equal(p.approval.approved, false);
  assert.equal(p.approval.reason, "not now");
  assert.equal(part(second.message, "data-ask").data.state, "answered");
  const history = await rest("GET", `/api/chat-history/${second.chatId}`);
  assert.ok(history.messages[1].metadata.time.human_ms > 0);
  assert.deepEqual(plain(history.messages[1]), plain(second.message));
});

test("a question answered in the stream", async () => {
  let asked;
  const { message } = await send("sim: ask Which colour? | red | blue ;; say %tool%", {
    body: { approvals: "stream" },
    onState: async (m) => {
      const q = part(m, "data-ask")?.data;
      if (q?.state === "pending" && !asked) {
        asked = q;
        await rest("POST", `/runs/${m.id}/human-loop/${q.question_id}/reply`, { answers: { [q.questions[0].id]: ["blue"] } });
      }
    },
  });
  assert.equal(asked.questions[0].options[1].label, "blue");
  assert.equal(part(message, "data-ask").data.state, "answered");
  assert.match(message.parts.filter((p) => p.type === "text").at(-1).text, /blue/);
});

test("approval by a second post", async () => {
  const chat = new Chat({
    id: crypto.randomUUID(),
    transport: transport({ executionProfile: "ask" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await chat.sendMessage({ text: "sim: say first ;; run echo yes ;; say last" });
  assert.equal(chat.status, "ready");
  const waiting = part(chat.lastMessage, "tool-command");
  assert.equal(waiting.state, "approval-requested");
  await chat.addToolApprovalResponse({ id: waiting.approval.id, approved: true });
  await until("the rest of the answer", () => chat.status === "ready" && chat.lastMessage.metadata.outcome);
  const answer = chat.lastMessage;
  assert.equal(chat.messages.length, 2);
  assert.equal(part(answer, "tool-command").state, "output-available");
  assert.equal(part(answer, "tool-command").output.output, "yes\n");
  assert.deepEqual(answer.parts.filter((p) => p.type === "text").map((p) => p.text), ["first", "last"]);
});

test("resume replays the running answer without doubling it", async () => {
  const id = crypto.randomUUID();
  const slow = "sim: slow 20ms 5 ;; say " + "abcdefghij".repeat(30);
  const chat = new Chat({ id, transport: transport() });
  const sent = chat.sendMessage({ text: slow });
  await until("some text", () => chat.lastMessage?.role === "assistant" && chat.lastMessage.parts.some((p) => p.text?.length > 20));
  chat.stop(); // a disconnect: the run goes on
  await sent;
  const again = new Chat({ id, transport: transport(), messages: [] });
  await again.resumeStream();
  const text = again.lastMessage.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  assert.equal(text, "abcdefghij".repeat(30));
  assert.equal(again.messages.filter((m) => m.role === "assistant").length, 1);
  const none = await transport().reconnectToStream({ chatId: id });
  assert.equal(none, null, "an idle chat has nothing to resume");
});

test("stop", async () => {
  const id = crypto.randomUUID();
  const chat = new Chat({ id, transport: transport() });
  const sent = chat.sendMessage({ text: "sim: say working ;; hang" });
  await until("the answer to begin", () => chat.lastMessage?.role === "assistant" && chat.lastMessage.parts.some((p) => p.text === "working"));
  await rest("POST", `/api/chat/${id}/stop`);
  await sent;
  assert.equal(chat.status, "ready");
  assert.equal(chat.lastMessage.metadata.outcome, "interrupted");
  assert.ok(chat.lastMessage.parts.every((p) => p.state !== "streaming"), "no part is left open");
});

test("regenerate", async () => {
  const chat = new Chat({ id: crypto.randomUUID(), transport: transport() });
  await chat.sendMessage({ text: "sim: say turn %turns%" });
  const first = chat.lastMessage;
  assert.match(part(first, "text").text, /turn/);
  await chat.regenerate();
  assert.equal(chat.messages.length, 2);
  assert.notEqual(chat.lastMessage.id, first.id);
  assert.equal(chat.lastMessage.metadata.outcome, "completed");
  const fork = chat.lastMessage.metadata.session_id;
  assert.notEqual(fork, first.metadata.session_id);
  await chat.sendMessage({ text: "sim: say turn %turns%" });
  assert.equal(part(chat.lastMessage, "text").text, "turn 2");
  const history = await rest("GET", `/api/chat-history/${fork}`);
  assert.deepEqual(history.messages.map((m) => m.role), chat.messages.map((m) => m.role), "client and server have the same messages");
});

test("errors are short sentences", async () => {
  await assert.rejects(send("hello", { body: { provider: "nobody" } }), (e) => {
    assert.match(e.message, /unknown provider/);
    assert.ok(!e.message.includes("{"), e.message);
    return true;
  });
  const id = crypto.randomUUID();
  const chat = new Chat({ id, transport: transport() });
  const sent = chat.sendMessage({ text: "sim: hang" });
  await until("the run", () => chat.lastMessage?.role === "assistant");
  await assert.rejects(send("me too", { chatId: id }), /active|busy|running/i);
  await rest("POST", `/api/chat/${id}/stop`);
  await sent;
});

test("a steer shows in the answer", async () => {
  let steered;
  const { message } = await send("sim: say one ;; wait 300ms ;; say two", {
    onState: async (m) => {
      if (!steered && m.parts.some((p) => p.text === "one")) {
        steered = true;
        await rest("POST", `/runs/${m.id}/steer`, { text: "sim: say three" });
      }
    },
  });
  assert.match(part(message, "data-steer").data.text, /three/);
  assert.ok(message.parts.some((p) => p.type === "text" && p.text === "three"));
});

test("the server stops in the middle", { skip: !process.env.THOLE_LAST }, async () => {
  const chat = new Chat({ id: crypto.randomUUID(), transport: transport() });
  const sent = chat.sendMessage({ text: "sim: say working ;; hang" });
  await until("the answer to begin", () => chat.lastMessage?.parts.some((p) => p.text === "working"));
  console.log("CUT ME");
  await sent;
  assert.equal(chat.status, "error", "a cut is no success");
  assert.match(String(chat.error), /network|fetch|terminated/i);
});
