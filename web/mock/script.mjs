// What the mock's agent says and does.
import { randomUUID } from "node:crypto";

const caps = { resume: "validated", fork: "validated", steer: "validated", human_loop: "validated" };
const profiles = ["plan", "ask", "edit", "full"];

export const providers = (none) => ({
  default: "codex",
  items: [
    { name: "codex", title: "Codex", version: "0.166.0", available: !none, problem: none ? "codex was not found in PATH" : undefined, fix: none ? "npm install -g @openai/codex" : undefined, models: [{ id: "gpt-5.3-codex", title: "GPT-5.3 Codex", efforts: ["low", "medium", "high"], default: true }, { id: "gpt-5.3-mini", title: "GPT-5.3 mini" }], profiles: profiles.map((profile) => ({ profile, native: profile === "full" ? "danger-full-access" : "workspace-write" })), capabilities: caps },
    { name: "claude", title: "Claude Code", version: "2.1.325", available: !none, problem: none ? "claude was not found in PATH" : undefined, fix: none ? "npm install -g @anthropic-ai/claude-code" : undefined, models: [{ id: "sonnet", title: "Sonnet", default: true }], profiles: profiles.map((profile) => ({ profile, native: profile })), capabilities: { ...caps, steer: "unavailable" } },
    { name: "opencode", title: "opencode", available: false, problem: "opencode was not found in PATH", fix: "npm install -g opencode-ai", models: [], profiles: [], capabilities: { ...caps, human_loop: "unknown" } },
  ],
});

const diff = `@@ -12,9 +12,11 @@ export function total(cart: Cart): Money {
   let sum = 0n;
   for (const line of cart.lines) {
-    sum += BigInt(Math.round(line.price * line.quantity * 100));
+    // Prices are exact cents: rounding once per line loses money.
+    sum += line.cents * BigInt(line.quantity);
   }
-  return money(sum / 100n);
+  return money(sum);
 }`;

const plan = ["Reproduce the wrong total", "Fix the rounding", "Cover it with a test", "Run the whole suite"];
const todos = (done) => plan.map((content, order) => ({ id: `t${order}`, content, order, state: order < done ? "done" : order === done ? "doing" : "todo" }));

async function say(io, type, text) {
  const id = randomUUID();
  const part = { type, text: "", state: "streaming" };
  io.part(part);
  io.chunk({ type: `${type}-start`, id });
  for (const word of text.split(/(?<=\s)/)) {
    if (io.stopped()) break;
    part.text += word;
    io.chunk({ type: `${type}-delta`, id, delta: word });
    await io.sleep(18);
  }
  part.state = "done";
  io.chunk({ type: `${type}-end`, id });
}

async function command(io, line, lines, exit_code, ask) {
  if (io.stopped()) return;
  const toolCallId = randomUUID();
  const input = { command: line, dir: io.session.dir };
  const part = { type: "tool-command", toolCallId, state: "input-available", input, providerExecuted: true };
  io.part(part);
  io.chunk({ type: "tool-input-start", toolCallId, toolName: "command", providerExecuted: true });
  io.chunk({ type: "tool-input-available", toolCallId, toolName: "command", input, providerExecuted: true });
  if (ask) {
    const reply = await io.ask({ kind: "command", item_id: toolCallId, command: line, dir: io.session.dir, reason: "The command writes outside of the workspace cache.", decisions: ["allow", "always", "deny", "cancel"] });
    if (reply?.decision !== "allow" && reply?.decision !== "always") {
      part.state = "output-denied";
      part.approval = { id: "x", approved: false };
      return io.chunk({ type: "tool-output-denied", toolCallId });
    }
  }
  let output = "";
  for (const text of lines) {
    output += `${text}\n`;
    io.chunk({ type: "tool-output-available", toolCallId, output: { output }, preliminary: true, providerExecuted: true });
    await io.sleep(150);
  }
  part.state = "output-available";
  part.output = { output, exit_code, duration_ms: 2140 };
  io.chunk({ type: "tool-output-available", toolCallId, output: part.output, providerExecuted: true });
}

function edit(io) {
  if (io.stopped()) return;
  const toolCallId = randomUUID();
  const input = { changes: [{ path: "src/cart/total.ts", kind: "update", diff }] };
  io.part({ type: "tool-file_change", toolCallId, state: "output-available", input, output: { state: "completed" }, providerExecuted: true });
  io.chunk({ type: "tool-input-start", toolCallId, toolName: "file_change", providerExecuted: true });
  io.chunk({ type: "tool-input-available", toolCallId, toolName: "file_change", input, providerExecuted: true });
  io.chunk({ type: "tool-output-available", toolCallId, output: { state: "completed" }, providerExecuted: true });
}

const step = (io) => {
  io.part({ type: "step-start" });
  io.chunk({ type: "start-step" });
};

export async function script(io, text) {
  step(io);
  if (/^(hi|fail|short)/.test(text)) return say(io, "text", "Here is a **short** answer with `code`.");
  io.todos(todos(0));
  await say(io, "reasoning", "The total is computed with floating point prices. I should look at how lines are summed, reproduce the error with a failing test, and then change the arithmetic.");
  await say(io, "text", "I will reproduce the wrong total first, then fix the rounding.\n\n");
  await command(io, "npm test -- total", ["> shop@2.4.1 test", "> vitest run total", "", " ✗ total › sums three lines of 0.105", "   expected 0.32 to equal 0.33", "", " Tests  1 failed | 11 passed"], 1);
  io.todos(todos(1));
  step(io);
  edit(io);
  io.todos(todos(2));
  await command(io, "npm test -- total --update-cache /var/cache/shop", [" ✓ total (12)", " Tests  12 passed"], 0, true);
  if (io.stopped()) return;
  step(io);
  const reply = await io.ask({ kind: "input", questions: [{ id: "scope", header: "Scope", text: "Which currencies should the new test cover?", options: [{ label: "EUR only", description: "The shop sells in one currency today" }, { label: "EUR and JPY", description: "JPY has no decimals, a good corner case" }], free: true }] });
  if (io.stopped()) return;
  io.todos(todos(4));
  io.part({ type: "source-url", sourceId: "1", url: "https://www.iso.org/iso-4217-currency-codes.html", title: "ISO 4217 currency codes" });
  io.chunk({ type: "source-url", sourceId: "1", url: "https://www.iso.org/iso-4217-currency-codes.html", title: "ISO 4217 currency codes" });
  await say(io, "text", `The total is exact now. The new test covers **${Object.values(reply?.answers ?? { x: ["EUR"] }).flat().join(", ")}**.\n\n| case | before | after |\n|---|---|---|\n| 3 × 0.105 | 0.32 | 0.33 |\n| 1 × 19.99 | 19.99 | 19.99 |\n\n\`\`\`ts\nexport function total(cart: Cart): Money {\n  let sum = 0n;\n  for (const line of cart.lines) sum += line.cents * BigInt(line.quantity);\n  return money(sum);\n}\n\`\`\`\n\nTwo things to know:\n\n1. \`line.price\` is gone; callers use \`line.cents\`.\n2. The cache in \`/var/cache/shop\` was rebuilt.`);
}

export function longThread(items, session_id) {
  const out = [];
  const each = 9; // parts of one answer
  for (let n = 0; n * (each + 1) < items; n++) {
    const run_id = randomUUID();
    const created_at = new Date(Date.now() - 9 * 864e5 + n * 60e3).toISOString();
    out.push({ id: randomUUID(), role: "user", metadata: { run_id, created_at }, parts: [{ type: "text", text: `Question ${n}: what does module ${n} do?` }] });
    const parts = [{ type: "step-start" }];
    for (let i = 0; i < each - 2; i++) parts.push({ type: "tool-command", toolCallId: `${run_id}-${i}`, state: "output-available", providerExecuted: true, input: { command: `sed -n '${i * 40},${i * 40 + 40}p' src/module${n}.ts` }, output: { output: `line ${i}\n`.repeat(8), exit_code: 0, duration_ms: 40 } });
    parts.push({ type: "text", text: `Module ${n} keeps **state ${n}**. ${"It is read by others and written by one. ".repeat(n % 7)}`, state: "done" });
    out.push({ id: run_id, role: "assistant", metadata: { session_id, run_id, provider: "codex", created_at, ended_at: created_at, outcome: "completed", usage: { input: 1200, output: 300 } }, parts });
  }
  return out;
}
