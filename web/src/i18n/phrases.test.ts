import { readdirSync, readFileSync } from "node:fs";
import { beforeEach, expect, it } from "vitest";
import { problemOf } from "../api/http";
import { phrases, translated, translatedLine } from "./phrases";
import { zhPhrases } from "./zh-phrases";

beforeEach(() => phrases.set(zhPhrases));

it("is what the server said in English", () => {
  phrases.set(undefined);
  const said = { message: "the queue is full: 8 messages wait", code: "overloaded", hint: "try again in a moment" };
  expect(translated(said)).toBe(said);
  expect(translatedLine("the queue is full: 8 messages wait")).toBe("the queue is full: 8 messages wait");
});

it("says a sentence with what stood in it, and its hint", () => {
  expect(translated({ message: "the queue is full: 8 messages wait", code: "overloaded", hint: "try again in a moment" })).toEqual({
    message: "队列已满：有 8 条消息在等待",
    code: "overloaded",
    hint: "请稍后重试",
  });
  expect(translatedLine('repository /home/a b has no commit "x \\"y\\""')).toBe('仓库 /home/a b 没有提交 "x \\"y\\""');
});

it("says an error inside of another, and keeps one that it does not know", () => {
  expect(translatedLine("the thread's files cannot be read: the thread has no files yet")).toBe("无法读取这个对话的文件：这个对话还没有文件");
  expect(translatedLine("the thread's files cannot be read: EIO")).toBe("无法读取这个对话的文件：EIO");
});

it("says what kind of refusal it is where it has no sentence for it, with the server's own words", () => {
  expect(translated({ message: "a gnat is in the works", code: "conflict", hint: "swat it" })).toMatchObject({
    message: "与当前状态冲突，未执行",
    hint: "服务器原文：a gnat is in the works\nswat it",
  });
  expect(translated({ message: "", code: "auth", hint: "swat it" })).toMatchObject({ message: "模型服务拒绝了登录", hint: "swat it" });
  expect(translated({ message: "a gnat", code: "unheard_of" }).message).toBe(zhPhrases.other);
  expect(translated({ message: "$& {1}", code: "busy", hint: undefined }).hint).toBe("服务器原文：$& {1}");
});

it("takes no sentence for another that only begins like it, and does not look through long ones", () => {
  expect(translatedLine("not logged in anywhere")).toBe("not logged in anywhere");
  const long = `repository ${"has no commit ".repeat(100)}yet`;
  expect(translatedLine(long)).toBe(long);
});

it("holds for every refusal that a request gets", async () => {
  const body = { detail: "no active turn to steer", code: "conflict" };
  await expect(problemOf(new Response(JSON.stringify(body), { status: 409 }))).resolves.toMatchObject({ message: "没有正在进行的运行", code: "conflict", status: 409 });
  const refused = new Response("a gnat", { status: 409, headers: { "x-thole-code": "busy" } });
  await expect(problemOf(refused)).resolves.toMatchObject({ message: "现在正忙，请稍后再试", hint: "服务器原文：a gnat" });
});

it("knows the sentences that the server's sources have, and gives each verb a place", () => {
  const roots = ["..", "../internal", "../event", "../client"];
  const files = roots.flatMap((root) => readdirSync(root, { recursive: root !== "..", encoding: "utf8" }).map((it) => `${root}/${it}`));
  const sources = files
    .filter((it) => it.endsWith(".go") && !it.endsWith("_test.go"))
    .map((it) => readFileSync(it, "utf8"))
    .join("\n");
  const stale = Object.keys(zhPhrases.sentences).filter((it) => !sources.includes(JSON.stringify(it)) && !sources.includes(`\`${it}\``));
  expect(stale).toEqual([]);
  const odd = Object.entries(zhPhrases.sentences).filter(([format, text]) => {
    const verbs = format.match(/%[+#.\d]*[sdqvwT]/g)?.length ?? 0;
    return [...text.matchAll(/\{(\d)\}/g)].some((it) => Number(it[1]) > verbs);
  });
  expect(odd).toEqual([]);
  const codes = [...readFileSync("../error.go", "utf8").matchAll(/Code = "(\w+)"/g), ...readFileSync("../turn.go", "utf8").matchAll(/ErrorCode = "(\w+)"/g)].map((it) => it[1]!);
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((it) => !zhPhrases.kinds[it])).toEqual([]);
});
