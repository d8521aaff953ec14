// The official client on threads of one real agent. THOLE_URL and THOLE_TOKEN name
// the server, THOLE_AGENT the agent, THOLE_ROWS what to do. It prints one line of JSON
// for each row: its name, and what was wrong.
import assert from "node:assert/strict";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, readUIMessageStream } from "ai";
import { Chat } from "./plain.mjs";

const base = process.env.THOLE_URL;
const headers = { Authorization: `Bearer ${process.env.THOLE_TOKEN}` };
const patience = 180000;

async function rest(method, path, body) {
  const res = await fetch(base + path, { method, headers: { ...headers, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const text = await res.text();
  assert.ok(res.ok, `${method} ${path}: ${res.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

// send streams one message and returns the answer. What the agent asks, answer is
// called with once.
async function send(text, { profile = "full", answer, onState } = {}) {
  const chatId = crypto.randomUUID();
  const transport = new DefaultChatTransport({ api: `${base}/api/chat`, headers, body: { provider: process.env.THOLE_AGENT, executionProfile: profile, approvals: "stream" } });
  const messages = [{ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] }];
  const stream = await transport.sendMessages({ chatId, trigger: "submit-message", messages, abortSignal: AbortSignal.timeout(patience) });
  let last;
  const errors = [];
  const asked = new Set();
  for await (const message of readUIMessageStream({ stream, onError: (e) => errors.push(e) })) {
    last = structuredClone(message);
    if (onState) await onState(last, chatId);
    const q = last.parts.find((p) => p.type === "data-ask")?.data;
    if (answer && q?.state === "pending" && !asked.has(q.question_id)) {
      asked.add(q.question_id);
      await rest("POST", `/runs/${last.id}/human-loop/${q.question_id}/reply`, answer(q));
    }
  }
  assert.deepEqual(errors.map(String), []);
  return { last, asked: asked.size, text: last.parts.filter((p) => p.type === "text").map((p) => p.text).join("\n") };
}

const words = (message) => message.parts.filter((p) => p.type === "text").map((p) => p.text).join("\n");

// stock is the client as applications use it: it posts approvals back by itself.
function stock(profile) {
  return new Chat({
    id: crypto.randomUUID(),
    transport: new DefaultChatTransport({ api: `${base}/api/chat`, headers, body: { provider: process.env.THOLE_AGENT, executionProfile: profile } }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
}

// settle answers every approval of a stock client until its answer is whole, and returns
// how many there were.
async function settle(chat, approved) {
  const end = Date.now() + patience;
  const asked = new Set();
  while (!chat.lastMessage?.metadata?.outcome) {
    assert.ok(Date.now() < end, `the client never went on: ${chat.status}, ${JSON.stringify(chat.lastMessage?.parts.map((p) => [p.type, p.state]))}`);
    assert.equal(chat.error, undefined, String(chat.error));
    const waiting = chat.lastMessage?.parts.find((p) => p.state === "approval-requested" && !asked.has(p.approval.id));
    if (waiting && chat.status === "ready") {
      asked.add(waiting.approval.id);
      await chat.addToolApprovalResponse({ id: waiting.approval.id, approved, reason: approved ? undefined : "not now" });
    }
    await new Promise((r) => setTimeout(r, 20));
  }
  return asked.size;
}

const rows = {
  "stock approval": async () => {
    const chat = stock("ask");
    await chat.sendMessage({ text: "sim: escalate touch made && echo approved-$((40+2)) ;; say it printed %tool%" });
    assert.equal(await settle(chat, true), 1, "it was not asked once");
    assert.match(words(chat.lastMessage), /approved-42/);
    assert.equal(chat.messages.length, 2);
  },
  "stock approvals": async () => {
    const chat = stock("ask");
    await chat.sendMessage({ text: "sim: escalate touch one && echo first-$((40+2)) ;; and escalate touch two && echo second-$((40+2)) ;; say they printed %tool%" });
    assert.ok((await settle(chat, true)) >= 1, "it was not asked");
    assert.match(words(chat.lastMessage), /first-42[^]*second-42/);
  },
  "stock denial": async () => {
    const chat = stock("ask");
    await chat.sendMessage({ text: "sim: escalate touch never ;; say went on" });
    assert.equal(await settle(chat, false), 1, "it was not asked once");
    assert.match(words(chat.lastMessage), /went on/);
    assert.equal(chat.lastMessage.parts.find((p) => p.type === "tool-command")?.state, "output-denied");
  },
  "answer again": async () => {
    const chat = stock("full");
    await chat.sendMessage({ text: "apple\nsim: say one %prompts%" });
    await chat.sendMessage({ text: "pear\nsim: say two %prompts% since %first%" });
    const first = chat.lastMessage;
    assert.match(words(first), /two 2 since apple/);
    await chat.regenerate();
    assert.match(words(chat.lastMessage), /two 2 since apple/, "the first answer is in the conversation, or its beginning is not");
    assert.notEqual(chat.lastMessage.metadata.session_id, first.metadata.session_id);
    await chat.sendMessage({ text: "plum\nsim: say three %prompts% since %first%" });
    assert.match(words(chat.lastMessage), /three 3 since apple/);
    const edited = chat.messages.filter((m) => m.role === "user")[1];
    await chat.sendMessage({ text: "fig\nsim: say edited %prompts% since %first%", messageId: edited.id });
    assert.match(words(chat.lastMessage), /edited 2 since apple/);
    assert.equal(chat.messages.length, 4);
    const kept = await rest("GET", `/sessions/${first.metadata.session_id}/messages`);
    assert.equal(kept.items.length, 4, "the session that was forked changed");
  },
  answer: async () => {
    const { last, text } = await send("sim: say hello from the agent");
    assert.match(text, /hello from the agent/);
    assert.equal(last.metadata.outcome, "completed");
  },
  "approved command": async () => {
    const { last, asked, text } = await send("sim: escalate touch made && echo approved-$((40+2)) ;; say it printed %tool%", { profile: "ask", answer: () => ({ decision: "allow" }) });
    assert.equal(asked, 1, "it was not asked once");
    assert.match(text, /approved-42/);
    const part = last.parts.find((p) => p.type === "tool-command");
    assert.equal(part?.state, "output-available");
    assert.match(part.output.output, /approved-42/);
  },
  "declined command": async () => {
    const { last, asked, text } = await send("sim: escalate touch never ;; say went on", { profile: "ask", answer: () => ({ decision: "deny", message: "not now" }) });
    assert.equal(asked, 1, "it was not asked once");
    assert.match(text, /went on/);
    assert.equal(last.parts.find((p) => p.type === "tool-command")?.state, "output-denied");
  },
  edit: async () => {
    const { last, text } = await send("sim: write made.txt by the agent ;; say wrote it");
    assert.match(text, /wrote it/);
    const part = last.parts.find((p) => p.type === "tool-file_change");
    assert.match(part?.input.changes[0].path ?? "", /made\.txt$/);
  },
  question: async () => {
    const { asked, text } = await send("sim: ask Which colour? | red | blue ;; say chosen: %tool%", { answer: (q) => ({ answers: { [q.questions[0].id]: ["blue"] } }) });
    assert.equal(asked, 1, "it was not asked once");
    assert.match(text, /chosen:[^]*blue/);
  },
  plan: async () => {
    const { last } = await send("sim: todo [x] read it | [~] write it ;; say planned");
    assert.deepEqual(last.parts.find((p) => p.type === "data-todo")?.data.todos.map((t) => t.state), ["done", "doing"]);
  },
  stop: async () => {
    let stopped;
    const { last } = await send("sim: run echo begun; exec sleep 1000", {
      onState: async (m, chatId) => {
        if (!stopped && m.parts.some((p) => p.type === "tool-command")) {
          stopped = true;
          await rest("POST", `/api/chat/${chatId}/stop`);
        }
      },
    });
    assert.equal(last.metadata.outcome, "interrupted");
  },
};

for (const name of process.env.THOLE_ROWS.split(",")) {
  let wrong = "";
  try {
    await rows[name]();
  } catch (e) {
    wrong = String(e?.message ?? e);
  }
  console.log(JSON.stringify({ name, wrong }));
}
process.exit(0);
