import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { FileChange, Question } from "../api/types";
import { emptySide, type Side } from "../state/fold";
import { Store } from "../state/store";
import type { Conversation } from "../state/conversation";
import { OpenAsk } from "./ask-card";
import { ConversationContext } from "./context";
import { diffStat, linesOf } from "./diff-lines";

afterEach(cleanup);

// Lines of a file that look like lines of a patch once they are marked, or without a mark.
const hostile = [
  "++ $(curl evil)", "-- drop", "+++ b/x", "--- a/x", "@@ -1 +1 @@", "diff --git a/x b/x",
  "index 1..2", "Index: x", "=====", "new file mode 100755", "\\ No newline", "", "- item", "+ item",
];
const header = "--- a/x\n+++ b/x\n";
const marked = (mark: string) => hostile.map((line) => `${mark}${line}\n`).join("");
const n = hostile.length;

const forms: Record<string, { change: FileChange; marks: string }> = {
  "a patch": { change: { path: "x", kind: "update", diff: `${header}@@ -1,${n} +1,${n} @@\n${marked("-")}${marked("+")}` }, marks: "-+" },
  "a patch of git": {
    change: { path: "x", kind: "update", diff: `diff --git a/x b/x\nindex 1..2 100644\n${header}@@ -0,0 +1,${n} @@\n${marked("+")}` },
    marks: "+",
  },
  "hunks alone": { change: { path: "x", kind: "update", diff: `@@ -1,${n} +0,0 @@\n${marked("-")}` }, marks: "-" },
  "hunks that say they are shorter": { change: { path: "x", kind: "update", diff: `@@ -1 +1 @@\n${marked("-")}${marked("+")}` }, marks: "-+" },
  "a new file, marked": { change: { path: "x", kind: "add", diff: marked("+") }, marks: "+" },
  "a new file as a patch": { change: { path: "x", kind: "add", diff: `--- /dev/null\n+++ b/x\n@@ -0,0 +1,${n} @@\n${marked("+")}` }, marks: "+" },
  "a new file, bare": { change: { path: "x", kind: "add", diff: marked("") }, marks: "+" },
  "a deleted file, marked": { change: { path: "x", kind: "delete", diff: marked("-") }, marks: "-" },
};

describe.each(Object.entries(forms))("%s", (_, { change, marks }) => {
  it("hides no line, whatever it looks like, and counts each", () => {
    const lines = linesOf(change);
    const expected = [...marks].flatMap((mark) => hostile.map((line) => mark + line));
    expect(lines.filter((it) => it.kind !== "hunk").map((it) => it.text)).toEqual(expected);
    expect(lines.every((it) => it.kind === "hunk" || it.kind === (it.text[0] === "+" ? "added" : "removed"))).toBe(true);
    expect(diffStat([change])).toEqual({ added: marks.includes("+") ? n : 0, removed: marks.includes("-") ? n : 0 });
  });
});

it("a patch whose header no hunk follows is shown with it", () => {
  const diff = "--- rm -rf /\n+++ b/x\nindex 1..2\n";
  expect(linesOf({ path: "x", kind: "update", diff }).map((it) => it.text)).toEqual(["--- rm -rf /", "+++ b/x", "index 1..2"]);
  expect(linesOf({ path: "x", kind: "update", diff: header }).map((it) => it.text)).toEqual(["--- a/x", "+++ b/x"]);
  expect(linesOf({ path: "x", kind: "update", diff: "old mode 100644\nnew mode 100755\n@@ -1 +1 @@\n-a\n+b\n" })[1]!.text).toBe("new mode 100755");
});

it("the last line of a new file may have no end", () => {
  expect(linesOf({ path: "x", kind: "add", diff: "+a\n\\ No newline at end of file\n" }).map((it) => it.text)).toEqual(["+a", "\\ No newline at end of file"]);
});

it("an approval shows all lines of all changes, two of one file too, and hidden characters", () => {
  const many = Array.from({ length: 200 }, (_, i) => `+line ${i}`).join("\n");
  const changes: FileChange[] = [
    { path: "x", kind: "update", diff: `@@ -0,0 +1,200 @@\n${many}\n` },
    { path: "x", kind: "update", diff: "@@ -0,0 +1 @@\n+++ $(evil)\n+a\u202eb\n" },
  ];
  const question = { question_id: "q", kind: "file_change", state: "pending", changes } as Question;
  const side = { side: new Store<Side>(emptySide) } as unknown as Conversation;
  const { container } = render(
    <ConversationContext value={side}>
      <OpenAsk question={question} answer={async () => {}} />
    </ConversationContext>,
  );
  const shown = [...container.querySelectorAll("pre > div")].map((it) => it.textContent);
  expect(shown).toEqual(["@@ -0,0 +1,200 @@", ...many.split("\n"), "@@ -0,0 +1 @@", "+++ $(evil)", "+a\\u202eb"]);
});
