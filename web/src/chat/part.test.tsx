import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { ChatPart, Question, Todo } from "../api/types";
import type { Conversation } from "../state/conversation";
import { emptySide, type Side } from "../state/fold";
import { Store } from "../state/store";
import { openable, picture } from "../ui/address";
import { ConversationContext } from "./context";
import Markdown from "./markdown";
import { Part } from "./part";
import { Sources } from "./parts/small";
import { Agent } from "../panels/agent";
import { Todos } from "../panels/todos";

afterEach(cleanup);
beforeAll(() => void (globalThis.fetch = () => Promise.reject(new TypeError("no network"))));

const inside = (node: React.ReactNode, side: Partial<Side> = {}) =>
  render(<ConversationContext value={{ side: new Store<Side>({ ...emptySide, ...side }) } as unknown as Conversation}>{node}</ConversationContext>);
const draw = (part: unknown, live = false) => inside(<Part part={part as ChatPart} live={live} />);

const evil = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "vbscript:msgbox(1)", "java\tscript:alert(1)", "//evil.example/x"];
evil.push("data:text/html,<script>alert(1)</script>");

test.each(evil)("%j is nowhere a link", (url) => {
  const { container } = inside(
    <>
      <Markdown text={`[a](<${url}>) ![b](<${url}>) <${url}>\n\n[c]\n\n[c]: <${url}>`} />
      <Sources parts={[{ type: "source-url", sourceId: "1", url, title: "source" }]} />
      <Part part={{ type: "file", mediaType: "text/html", url, filename: "x" }} live={false} />
      <Part part={{ type: "file", mediaType: "image/png", url, filename: "x" }} live={false} />
    </>,
  );
  // What an attachment itself holds may be saved, which runs nothing; nowhere is it opened.
  expect(container.querySelectorAll("a[href]:not([download]), img")).toHaveLength(0);
  expect(container.querySelectorAll("a[download]")).toHaveLength(url.startsWith("data:") ? 2 : 0);
  expect(container.textContent).toContain("source");
});

test("a path that browsers take for another server, or that leads nowhere, is not opened", () => {
  for (const url of ["//evil.example/x.png", "/\\evil.example/x.png", "\\\\evil.example", "src/main.go"])
    expect([openable(url), picture(url)]).toEqual([undefined, undefined]);
});

test("pages of the web are links, and nothing of them is loaded", () => {
  const { container } = inside(<Markdown text={"[a](https://example.org/a) ![b](https://example.org/b.png) [mail](mailto:a@example.org)"} />);
  const links = [...container.querySelectorAll("a")].map((it) => it.getAttribute("href"));
  expect(links).toEqual(["https://example.org/a", "https://example.org/b.png", "mailto:a@example.org"]);
  expect(container.querySelector("img")).toBeNull();
});

const dot = "data:image/png;base64,iVBORw0KGgo=";

test("a picture that is in its address is shown, in words and in a tool's result", () => {
  const { container } = inside(<Markdown text={`![dot](${dot})`} />);
  expect(container.querySelector("img")?.getAttribute("src")).toBe(dot);
  cleanup();
  const tool = { type: "dynamic-tool", toolName: "shot", toolCallId: "1", state: "output-available", input: {}, output: dot };
  const { container: shot } = draw(tool);
  expect(shot.querySelector("img")).toBeNull(); // folded
  fireEvent.click(within(shot).getByRole("button"));
  expect(shot.querySelector("img")?.getAttribute("src")).toBe(dot);
  expect(shot.textContent).not.toContain("base64");
});

test("a command shows colours and the last state of a line, as text", () => {
  const output = "10%\r100%\n\u001b[31m<b>red</b>\u001b[0m";
  const command = { type: "tool-command", toolCallId: "1", input: { command: "make \u202e" } };
  const { container } = draw({ ...command, state: "output-available", output: { output, exit_code: 1 } });
  const pre = screen.getByLabelText("Output");
  expect(pre.textContent).toBe("100%\n<b>red</b>");
  expect(within(pre).getByText("<b>red</b>").style.color).toBe("var(--ansi-red)");
  expect(container.querySelector("b")).toBeNull();
  expect(container.textContent).not.toContain("\u202e");
});

const todos = [{ id: "1", content: "first", state: "doing", order: 0 }] as Todo[];

test.each([
  ["at work", "run", true],
  ["over", undefined, false],
])("a todo turns only while its agent is %s", (_, active_run_id, turns) => {
  const { container } = inside(<Todos />, { todos, session: { id: "s", active_run_id } as Side["session"] });
  expect(container.querySelector(".animate-spin, .spin") !== null).toBe(turns);
  expect(container.textContent).toContain("first");
});

test("the gauge shows the last call of the model, and nothing when it is not known", () => {
  const usage = { input: 900_000, output: 90_000, context_window: 200_000 };
  const run = (more: object) => ({ id: "r", phase: "running", created_at: "2026-01-01T00:00:00Z", usage: { ...usage, ...more } }) as Side["run"];
  const { container } = inside(<Agent />, { run: run({ last: { input: 10_000, output: 500, cache_read: 1500 } }) });
  expect(container.textContent).toMatch(/12(\.0)?k \/ 200k/i);
  cleanup();
  expect(inside(<Agent />, { run: run({}) }).container.textContent).not.toMatch(/\/ 200k/i);
});

const question: Question = { question_id: "q", run_id: "r", session_id: "s", kind: "permissions", state: "pending", decisions: ["allow", "always", "deny"] };
const fetching = { name: "WebFetch", input: { url: "https://example.org", options: { followRedirects: true } } };

test.each([
  ["a tool", { ...question, tool: fetching, always: ["WebFetch on example.org"] }, ["https://example.org", "follow redirects", "WebFetch on example.org"]],
  ["more rights", { ...question, wants: ["the network", "writing in /tmp/x"], always: ["the network"] }, ["the network", "writing in /tmp/x"]],
  ["a command", { ...question, kind: "command" as const, command: "npm test", always: ["commands like npm test"] }, ["commands like npm test"]],
  ["a structure of its own", { ...question, tool: { name: "x", input: { odd: [{ a: 1 }] } }, always: ["the tool x"] }, ["odd › a", "the tool x"]],
])("an approval of %s shows what it is about above the buttons, and no JSON", (_, data, words) => {
  const { container } = draw({ type: "data-ask", id: "q", data });
  const [before] = container.textContent!.split("Allow");
  for (const word of words) expect(before).toContain(word);
  expect(container.textContent).not.toMatch(/[{}[\]"]/);
});
