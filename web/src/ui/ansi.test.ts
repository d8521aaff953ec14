import { expect, test } from "vitest";
import { screen } from "./ansi";

const shown = (text: string) => screen(text).map((line) => line.map((run) => run.text).join(""));

test.each([
  ["a progress bar shows its last state", "10%\r 50%\r100%\ndone", ["100%", "done"]],
  ["a shorter line leaves what it did not write over", "downloading\rdone", ["doneloading"]],
  ["unless it was erased", "downloading\r\x1b[Kdone", ["done"]],
  ["or erased as a whole", "abc\x1b[2K\rx", ["x"]],
  ["windows line ends are line ends", "a\r\nb\r\n", ["a", "b", ""]],
  ["backspaces write over", "spin |\b/\b-", ["spin -"]],
  ["several bars go up and down", "a 1\nb 1\n\x1b[2Aa 2\nb 2\n", ["a 2", "b 2", ""]],
  ["titles, links and images are gone", "\x1b]0;evil\x07x\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\\x1bPq#0\x1b\\", ["xlink"]],
  ["a string without an end hides only itself", "x\x1b]0;never ends", ["x"]],
  ["charsets, bells and 8-bit sequences are gone", "\x1b(B\x07a\x9b31mb\x1bc\x00", ["ab"]],
  ["nobody is moved out of sight", "\x1b[999999999Cx", [`${" ".repeat(2000)}x`]],
  ["markup is text", "<img src=x onerror=alert(1)>\x1b[1m&lt;", ["<img src=x onerror=alert(1)>&lt;"]],
])("%s", (_, text, wanted) => expect(shown(text)).toEqual(wanted));

test.each([
  ["\x1b[31mred\x1b[0m plain", [{ text: "red", style: { fg: "red" } }, { text: " plain" }]],
  ["\x1b[1;92;44mx\x1b[39;22my", [{ text: "x", style: { bold: true, fg: "bright-green", bg: "blue" } }, { text: "y", style: { bg: "blue" } }]],
  ["\x1b[38;5;196mx", [{ text: "x", style: { fg: "rgb(255 0 0)" } }]],
  ["\x1b[38;5;9mx", [{ text: "x", style: { fg: "bright-red" } }]],
  ["\x1b[48;2;1;2;3mx", [{ text: "x", style: { bg: "rgb(1 2 3)" } }]],
  ["\x1b[38;2;999;2;3mx", [{ text: "x" }]],
  ["\x1b[7mx\x1b[mx", [{ text: "x", style: { inverse: true } }, { text: "x" }]],
])("%j has its colours", (text, wanted) => expect(screen(text)).toEqual([wanted]));

test("half a megabyte of progress is drawn at once", () => {
  const text = Array.from({ length: 25_000 }, (_, n) => `\r\x1b[32m${n} of 25000\x1b[0m`).join("");
  expect(screen(text)[0]!.map((run) => run.text).join("")).toBe("24999 of 25000");
});
