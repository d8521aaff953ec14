import { expect, it } from "vitest";
import { tokens } from "./highlight";

const kinds = (code: string, language: string) => Object.fromEntries(tokens(code, language).filter((it) => it.kind).map((it) => [it.text, it.kind]));

it("distinguishes comments, strings, numbers and words of a language", () => {
  expect(kinds('func main() { return "no // comment", 0x1f } // yes\n', "go")).toEqual({ func: "keyword", return: "keyword", '"no // comment"': "string", "0x1f": "number", "// yes": "comment" });
  expect(kinds("def f():  # why\n  '''a\n  b'''\n", "python")).toEqual({ def: "keyword", "# why": "comment", "'''a\n  b'''": "string" });
  expect(kinds("SELECT 1 -- one", "sql")).toEqual({ SELECT: "keyword", "1": "number", "-- one": "comment" });
  expect(kinds("+++ b/x\n+new\n-old\n same\n", "diff")).toEqual({ "+++ b/x\n": "comment", "+new\n": "added", "-old\n": "removed" });
});

it("loses no character, whatever it is given", () => {
  const pieces = ['"', "'", "`", "\\", "/*", "*/", "//", "#", "--", "<!--", "\n", "if", "12.5e3", "變數", "'''", " "];
  let seed = 7;
  const pick = () => pieces[(seed = (seed * 48271) % 2147483647) % pieces.length]!;
  for (let n = 0; n < 400; n++) {
    const code = Array.from({ length: 30 }, pick).join("");
    for (const language of ["go", "python", "sql", "html", "diff", "nobody-knows"]) expect(tokens(code, language).map((it) => it.text).join("")).toBe(code);
  }
});

it("leaves unknown languages and very long code as they are", () => {
  expect(tokens("if x", "nobody-knows")).toEqual([{ text: "if x" }]);
  expect(tokens("if ".repeat(30_000), "go")).toHaveLength(1);
});
