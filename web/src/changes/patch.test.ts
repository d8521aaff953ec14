import { describe, expect, it } from "vitest";
import { hunksOf, messageOf, pairsOf, plainPath } from "./patch";

const patch = `diff --git a/list.txt b/list.txt
index 1..2 100644
--- a/list.txt
+++ b/list.txt
@@ -1,4 +1,4 @@ first
 a
--- b
-c
++++ x
 d
@@ -9 +9,2 @@
-@@ -1 +1 @@
+y
+z
\\ No newline at end of file
`;

describe("a patch", () => {
  it("is read by its lengths, not by what lines look like", () => {
    const hunks = hunksOf(patch.replace("-1,4 +1,4", "-1,4 +1,3"));
    expect(hunks.map((it) => it.lines.map((line) => [line.kind, line.old, line.now, line.text]))).toEqual([
      [["same", 1, 1, "a"], ["removed", 2, undefined, "-- b"], ["removed", 3, undefined, "c"], ["added", undefined, 2, "+++ x"], ["same", 4, 3, "d"]],
      [["removed", 9, undefined, "@@ -1 +1 @@"], ["added", undefined, 9, "y"], ["added", undefined, 10, "z"], ["note", undefined, undefined, " No newline at end of file"]],
    ]);
  });
  it("hides nothing where lengths are wrong", () => {
    const lines = (text: string) => hunksOf(text).flatMap((it) => it.lines.map((line) => [line.kind, line.text]));
    expect(lines("@@ -1 +1 @@\n-a\n+b\n+++ $(evil)\n--- c\n?d\n")).toEqual([["removed", "a"], ["added", "b"], ["added", "++ $(evil)"], ["removed", "-- c"], ["same", "?d"]]);
    expect(lines("@@ -1,9 +1,9 @@\n-a\n@@ -5 +5 @@\n+b\n")).toEqual([["removed", "a"], ["same", "@@ -5 +5 @@"], ["added", "b"]]);
  });
  it("sets lines side by side", () => {
    const [first, second] = hunksOf(patch.replace("-1,4 +1,4", "-1,4 +1,3"));
    const text = (lines: ReturnType<typeof pairsOf>) => lines.map((it) => [it.left?.text, it.right?.text]);
    expect(text(pairsOf(first!.lines))).toEqual([["a", "a"], ["-- b", "+++ x"], ["c", undefined], ["d", "d"]]);
    expect(text(pairsOf(second!.lines))).toEqual([["@@ -1 +1 @@", "y"], [undefined, "z"]]);
  });
  it("is commented in one message", () => {
    const comment = { id: "1", path: "a\nb.go", side: "now" as const, from: 2, to: 3, code: ["x", "y"], text: "why? " };
    expect(messageOf([comment, { ...comment, path: "c.go", side: "old", to: 2, code: ["z"] }], "removed")).toBe('"a\\nb.go":2-3\n> x\n> y\n\nwhy?\n\nc.go:2 (removed)\n> z\n\nwhy?');
  });
  it("has names on one line", () => expect(plainPath("a\u202eb")).toBe('"a\\u202eb"'));
});
