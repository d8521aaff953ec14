import { expect, it } from "vitest";
import type { ChatMessage } from "../../api/types";
import { rowsOf } from "../rows";
import { hitsIn, plainOf } from "./hits";
import { rangesIn } from "./paint";

const messages = [
  { id: "u", role: "user", parts: [{ type: "text", text: "Find the Oar" }] },
  {
    id: "a",
    role: "assistant",
    parts: [
      { type: "reasoning", text: "An oar, an OAR." },
      { type: "tool-command", toolCallId: "c", state: "output-available", input: { command: "ls" }, output: { output: "oar.txt\n" } },
      { type: "tool-file_change", toolCallId: "f", state: "output-available", input: { changes: [{ path: "oar.go", kind: "add", diff: "+x" }] }, output: {} },
      { type: "text", text: "No **o**ar here" },
    ],
  },
] as ChatMessage[];

it("finds in messages, reasoning, outputs and changes, in reading order", () => {
  const hits = hitsIn(rowsOf(messages, { more: false, busy: false }), "oar");
  expect(hits.map((it) => it.nth)).toEqual([0, 0, 1, 0, 0, 0]);
  expect(new Set(hits.map((it) => it.key)).size).toBe(5);
  expect(hitsIn(rowsOf(messages, { more: false, busy: false }), "  ")).toEqual([]);
});
it("reads markdown as it is seen", () => {
  expect(plainOf("## The **bold** [link](http://x) and `code`\n> quote")).toBe("The bold link and code\nquote");
  expect(plainOf("2 * 3 * 4 and *so*")).toBe("2 * 3 * 4 and so");
});
it("marks a text that runs over several elements, and not what only a screen reader has", () => {
  document.body.innerHTML = "<p>very <b>first</b> answer<span class='sr-only'>very first answer</span></p>";
  const ranges = rangesIn(document.body, "FIRST ans");
  expect(ranges.map(String)).toEqual(["first ans"]);
});
