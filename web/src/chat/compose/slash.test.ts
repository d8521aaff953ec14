import { expect, it, vi } from "vitest";
import { mentionIn, suggestFiles } from "./mention";
import { type Command, commandIn, suggestCommands } from "./slash";
import { searchPath } from "./use-file-search";
import { skillCommands } from "./use-skills";

const command = (name: string, rest: Partial<Command> = {}): Command => ({ name, about: name, run: vi.fn(), ...rest });
const commands = [
  command("compact"),
  command("stop"),
  command("model", { argument: { name: "name", required: true, choices: [{ value: "gpt-5", text: "GPT-5" }, { value: "mini", text: "Mini" }] } }),
  command("rename", { argument: { name: "name", required: true } }),
];
const names = (text: string, caret = text.length) => suggestCommands(text, caret, commands).map((it) => it.id);

it("suggests commands only for the first word of the text", () => {
  expect(names("/")).toEqual(["compact", "stop", "model", "rename"]);
  expect(names("/com")).toEqual(["compact"]);
  for (const text of ["a /com", " /com", "/com x", "/compact ", "//", "\n/com"]) expect(names(text), text).toEqual([]);
  expect(names("/compact", 3)).toEqual([]); // the caret is inside of a word
});
it("suggests what a command takes", () => {
  expect(names("/model ")).toEqual(["gpt-5", "mini"]);
  expect(names("/model mi")).toEqual(["mini"]);
  expect(names("/rename a")).toEqual([]);
});
it("runs what is a command and sends what is not one", () => {
  expect(commandIn("/compact", commands)?.command.name).toBe("compact");
  expect(commandIn("/rename  A new\nname ", commands)).toMatchObject({ argument: "A new\nname" });
  for (const text of ["/etc/hosts is wrong", "/compact now", " /compact", "compact", "/unknown", "/"]) expect(commandIn(text, commands), text).toBeUndefined();
});
it("leaves an agent's own command to the agent", () => {
  const own = [command("review", { own: true, argument: { name: "what", required: false } })];
  expect(suggestCommands("/rev", 4, own)[0]).toMatchObject({ insert: "/review ", run: undefined });
  expect(commandIn("/review this", own)).toBeUndefined();
});
it("asks each agent for a skill in its own way", () => {
  const line = (agent: string) => suggestCommands("/row", 4, skillCommands(agent, ["rowing"], agent))[0];
  expect(["claude", "codex", "opencode"].map((it) => line(it)?.insert)).toEqual(["/rowing ", "$rowing ", "Use the skill rowing: "]);
  expect(line("codex")).toMatchObject({ text: "/rowing", run: undefined });
});
it("searches files before a chat has begun only where there are some", () => {
  expect(searchPath({ kind: "branch", repo: "/src/a b", ref: "main" }, true)).toBe("/sources/files?kind=branch&repo=%2Fsrc%2Fa+b&ref=main");
  expect(searchPath({ kind: "branch", repo: "/src", dirty: true }, true)).toBe("/sources/files?kind=branch&repo=%2Fsrc&dirty=true");
  expect(searchPath({ kind: "here", dir: "/src" }, true)).toBe("/sources/files?kind=here&dir=%2Fsrc");
  for (const source of [undefined, { kind: "empty" }, { kind: "upload", upload: "u" }, { kind: "branch", repo: "https://example.org/x" }] as const) expect(searchPath(source, true)).toBeUndefined();
  expect(searchPath({ kind: "here", dir: "/src" }, false)).toBeUndefined();
});
it("finds the file that is being named", () => {
  expect(mentionIn("look at @src/ma", 15)).toEqual({ from: 8, query: "src/ma" });
  expect(mentionIn("@", 1)).toEqual({ from: 0, query: "" });
  expect(mentionIn("(@a", 3)).toEqual({ from: 1, query: "a" });
  for (const [text, caret] of [["ada@example.org", 15], ["@a b", 4], ["a @b c", 6], ["@abc", 2]] as const) expect(mentionIn(text, caret), text).toBeUndefined();
});
it("writes a path so that it can be read again", () => {
  const files = [{ path: "a b.txt", kind: "file" as const }, { path: "src", kind: "directory" as const }, { path: "x", kind: "file" as const }];
  expect(suggestFiles(files, 0, 1).map((it) => it.insert)).toEqual(['@"a b.txt" ', "@src/", "@x "]);
});
