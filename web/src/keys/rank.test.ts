import { expect, it } from "vitest";
import { rank } from "./rank";

const best = (query: string, ...titles: string[]) =>
  titles
    .map((title) => ({ title, cost: rank(query, title) }))
    .filter((it) => it.cost !== undefined)
    .sort((a, b) => a.cost! - b.cost!)
    .map((it) => it.title);

it("prefers the beginning, then the beginning of a word, then anything", () => {
  expect(best("ar", "Dark appearance", "Archive this chat", "Show archived", "Hide details")).toEqual(["Archive this chat", "Show archived", "Dark appearance"]);
});
it("wants every word, in any order", () => {
  expect(best("chat new", "New chat", "Rename this chat")).toEqual(["New chat"]);
});
it("finds initials and letters in order, but not letters all over a sentence", () => {
  expect(best("nwc", "New chat")).toEqual(["New chat"]);
  expect(best("nwc", "Nothing of what was written in this long title can match")).toEqual([]);
});
it("finds by other words and in any script", () => {
  expect(rank("diff", "Show changes", "diff patch")).toBeDefined();
  expect(rank("对话", "新对话")).toBeDefined();
  expect(rank("", "anything")).toBe(0);
});
