import { describe, expect, it } from "vitest";
import type { ChatMessage, ChatPart, Question } from "../api/types";
import { rowsOf, samePart } from "./rows";
import { blocks } from "./blocks";

const answer = (...parts: ChatPart[]): ChatMessage => ({ id: "r", role: "assistant", parts });
const kinds = (message: ChatMessage, busy = false) => rowsOf([message], { more: false, busy }).map((row) => (row.kind === "part" ? row.part.type : row.kind));
const text = (value: string, state?: "streaming" | "done"): ChatPart => ({ type: "text", text: value, state });
const tool = (id: string, approval?: { id: string }): ChatPart => ({ type: "dynamic-tool", toolName: "plan", toolCallId: id, state: "input-available", input: {}, ...(approval && { approval }) }) as ChatPart;

describe("rows", () => {
  it("number steps from the second on and drop those that show nothing", () => {
    expect(kinds(answer({ type: "step-start" }, text("a"), { type: "step-start" }, text("b"), { type: "step-start" }))).toEqual(["top", "text", "step", "text", "foot"]);
    const failed: ChatPart = { type: "data-error", id: "error", data: { code: "overloaded", message: "busy" } };
    expect(kinds(answer({ type: "step-start" }, { type: "step-start" }, failed))).toEqual(["top", "data-error", "foot"]);
    const numbers = rowsOf([answer({ type: "step-start" }, text("a"), { type: "step-start" }, { type: "step-start" }, text("b"))], { more: false, busy: false });
    expect(numbers.flatMap((row) => (row.kind === "step" ? [row.number] : []))).toEqual([2]);
  });

  it("join neighbouring sources and leave out what has its own place", () => {
    const source = (n: string): ChatPart => ({ type: "source-url", sourceId: n, url: `https://example.org/${n}` });
    expect(kinds(answer(text("a"), source("1"), source("2"), { type: "data-usage", id: "usage", data: { input: 1, output: 1 } }, text("")))).toEqual(["top", "text", "sources", "foot"]);
  });

  it("show a question without its empty tool", () => {
    const question = { question_id: "q", kind: "plan", state: "pending" } as Question;
    expect(kinds(answer(tool("t", { id: "q" }), { type: "data-ask", id: "q", data: question }), true)).toEqual(["top", "data-ask"]);
    expect(kinds(answer(tool("t")), true)).toEqual(["top", "dynamic-tool", "wait"]);
  });

  it("say that something happens unless the text itself does", () => {
    expect(kinds(answer(text("a", "streaming")), true)).toEqual(["top", "text"]);
    expect(kinds(answer(text("a", "done")), true)).toEqual(["top", "text", "wait"]);
  });

  it("have keys of their own", () => {
    const rows = rowsOf([answer(text("a"), tool("1"), text("b"), tool("2"))], { more: true, busy: true });
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });
});

it("a part that is written on in place is drawn again", () => {
  const message = answer(text("a", "streaming"));
  const drawn = rowsOf([message], { more: false, busy: true });
  Object.assign(message.parts[0]!, { text: "a b" });
  const next = rowsOf([message], { more: false, busy: true });
  const part = (rows: ReturnType<typeof rowsOf>) => rows.find((row) => row.kind === "part")!.part;
  expect(samePart(part(drawn), part(next))).toBe(false);
});

it("samePart sees every change that is drawn", () => {
  expect(samePart(text("a"), text("a"))).toBe(true);
  expect(samePart(text("a", "streaming"), text("a", "done"))).toBe(false);
  expect(samePart(tool("1"), { ...tool("1"), state: "output-available", output: 1 } as ChatPart)).toBe(false);
});

describe("blocks", () => {
  it("cut at blank lines, but not inside code or a loose list", () => {
    expect(blocks("a\n\nb")).toEqual(["a", "b"]);
    expect(blocks("```\na\n\nb\n```\n\nc")).toEqual(["```\na\n\nb\n```", "c"]);
    expect(blocks("1. a\n\n2. b\n\n   more\n\nend")).toEqual(["1. a\n\n2. b\n\n   more", "end"]);
  });

  it("keep all of the text while it grows", () => {
    const whole = "# T\n\nsome text\n\n~~~js\nx\n\ny\n~~~\n- a\n\n- b\n\ntail";
    for (let n = 0; n <= whole.length; n++) expect(blocks(whole.slice(0, n)).join("").replaceAll("\n", "")).toBe(whole.slice(0, n).replaceAll("\n", ""));
  });
});

describe("a tool and the card that says the same", () => {
  const command = (state = "input-available"): ChatPart => ({ type: "tool-command", toolCallId: "t", state, input: { command: "ls" }, approval: { id: "q" } }) as ChatPart;
  const ask = (more: Partial<Question>): ChatPart => ({ type: "data-ask", id: "q", data: { question_id: "q", item_id: "t", kind: "command", state: "pending", ...more } as Question });
  const named = (toolName: string): ChatPart => ({ type: "dynamic-tool", toolName, toolCallId: "t", state: "input-available", input: {} }) as ChatPart;

  it("stand there once while the question is open, without a rule between them", () => {
    expect(kinds(answer(text("a"), command(), { type: "step-start" }, ask({ command: "ls" })), true)).toEqual(["top", "text", "data-ask"]);
    expect(kinds(answer(command(), { type: "step-start" }, ask({})), true)).toEqual(["top", "tool-command", "data-ask"]);
  });

  it("are both there afterwards, and the card knows", () => {
    const rows = rowsOf([answer(command("output-available"), { type: "step-start" }, ask({ command: "ls", state: "answered" }))], { more: false, busy: false });
    const seen: unknown[] = rows.map((row) => (row.kind === "part" ? [row.part.type, row.paired] : row.kind));
    expect(seen).toEqual(["top", ["tool-command", false], ["data-ask", true], "foot"]);
  });

  it("are one for good where the card is the tool: questions, plans, lists", () => {
    for (const kind of ["input", "plan"] as const) expect(kinds(answer(named("AskUserQuestion"), ask({ kind, state: "answered" })))).toEqual(["top", "data-ask", "foot"]);
    const list: ChatPart = { type: "data-todo", id: "todo", data: { todos: [], changes: 1 } };
    expect(kinds(answer(named("TodoWrite"), list, named("todowrite"), named("Read")))).toEqual(["top", "data-todo", "dynamic-tool", "foot"]);
  });
});

describe("a tool's version", () => {
  const running = (output: string, output_dropped = 0): ChatPart =>
    ({ type: "tool-command", toolCallId: "t", state: "output-available", preliminary: true, input: {}, output: { output, output_dropped } }) as ChatPart;
  const over = (output: object): ChatPart => ({ type: "tool-command", toolCallId: "t", state: "output-available", input: {}, output }) as ChatPart;

  it("moves with what it prints and when it ends", () => {
    expect(samePart(running("a"), running("a"))).toBe(true);
    expect(samePart(running("a"), running("ab"))).toBe(false);
    expect(samePart(running("a", 1), running("b", 2))).toBe(false);
    expect(samePart(running("a"), over({ output: "a", exit_code: 0 }))).toBe(false);
  });

  it("does not read what is over", () => {
    const unread = () => new Proxy({}, { get: () => expect.unreachable("was read"), ownKeys: () => expect.unreachable("was read") });
    expect(samePart(over(unread()), over(unread()))).toBe(true);
  });
});
