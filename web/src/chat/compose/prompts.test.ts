import { expect, it } from "vitest";
import type { ChatMessage } from "../../api/types";
import { promptsOf, type Recall, recall } from "./prompts";

const at = (text: string, start = text.length) => ({ text, start, end: start });
const prompts = ["first", "second\nwith a line", "third"];

it("goes back to the first and forth to what was being written", () => {
  let now = recall("back", at("a draft", 0), prompts, undefined) as Recall;
  expect(now.shown).toBe("third");
  now = recall("back", at("third"), prompts, now) as Recall;
  now = recall("back", at("second\nwith a line"), prompts, now) as Recall;
  expect(now.shown).toBe("first");
  expect(recall("back", at("first"), prompts, now)).toBe(now); // and stays there
  now = recall("forth", at("first"), prompts, now) as Recall;
  now = recall("forth", at(now.shown), prompts, now) as Recall;
  expect(now).toEqual({ back: 1, shown: "third", draft: "a draft" });
  expect(recall("forth", at("third"), prompts, now)).toBe("draft");
});
it("leaves the arrow to the field where the caret can still move", () => {
  expect(recall("back", at("a draft"), prompts, undefined)).toBeUndefined();
  expect(recall("back", { text: "ab", start: 0, end: 2 }, prompts, undefined)).toBeUndefined();
  const now = { back: 2, shown: prompts[1]!, draft: "" };
  expect(recall("back", at(prompts[1]!, 4), prompts, now)).toBeUndefined();
  expect(recall("forth", at(prompts[1]!, 4), prompts, now)).toBeUndefined();
  expect(recall("forth", at("a draft"), prompts, undefined)).toBeUndefined();
});
it("takes a changed prompt for a new draft", () => {
  const now = { back: 1, shown: "third", draft: "old" };
  expect(recall("forth", at("third, changed"), prompts, now)).toBeUndefined();
  expect(recall("back", at("third, changed", 0), prompts, now)).toEqual({ back: 1, shown: "third", draft: "third, changed" });
});
it("keeps its place when earlier prompts arrive", () => {
  const now = recall("back", at(""), ["b", "c"], { back: 1, shown: "c", draft: "" });
  expect(now).toMatchObject({ shown: "c" }); // an empty field begins again
  expect(recall("back", at("b"), ["a", "b", "c"], { back: 2, shown: "b", draft: "x" })).toEqual({ back: 3, shown: "a", draft: "x" });
});
it("reads what a person said, steered messages too, each once in a row", () => {
  const user = (text: string) => ({ id: text, role: "user", parts: [{ type: "text", text }] }) as ChatMessage;
  const answer = { id: "x", role: "assistant", parts: [{ type: "text", text: "no" }, { type: "data-steer", data: { text: "hurry" } }] } as ChatMessage;
  expect(promptsOf([user("a"), user("a"), answer, user(" a "), user("")])).toEqual(["a", "hurry", "a"]);
});
