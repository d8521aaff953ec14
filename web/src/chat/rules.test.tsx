import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Rule } from "../api/types";
import { speak } from "../i18n";
import { setPrefs } from "../state/prefs";
import { Rules } from "./rules";

afterEach(async () => {
  cleanup();
  setPrefs({ language: "en" });
  await speak();
});

const rules: Rule[] = [
  { kind: "command_prefix", subject: "npm test" },
  { kind: "server_tool_on", subject: "fetch", server: "web", target: "example.org" },
  { kind: "other", subject: "Grant more permissions" },
];
const english = ["commands that begin with npm test", "the tool fetch of web on example.org", "Grant more permissions"];
const shown = (some: Rule[] | undefined, words: string[]) => {
  const { container } = render(<Rules label="" rules={some} english={words} />);
  return [...container.querySelectorAll("span")].map((it) => it.textContent);
};

test("the page's English is the server's", () => expect(shown(rules, english)).toEqual(english));

test("what always would allow is said in Chinese", async () => {
  setPrefs({ language: "zh" });
  await speak();
  expect(shown(rules, english)).toEqual(["以 npm test 开头的命令", "对 example.org 使用 web 的工具 fetch", "Grant more permissions"]);
});

test("what the page has no words for is said by the server, and nothing is hidden in it", () => {
  expect(shown([{ kind: "moon" as never, subject: "x" }], ["the moon"])).toEqual(["the moon"]);
  expect(shown(undefined, ["the moon"])).toEqual(["the moon"]);
  expect(shown([], ["the moon"])).toEqual(["the moon"]);
  expect(shown([{ kind: "command", subject: "a\u202eb {server}", server: "no" }], ["-"])).toEqual(["the command a\\u202eb {server}"]);
});
