// Formulas are marked in four ways: $…$, $$…$$, \(…\) and \[…\]. The renderer is given one of them, two dollars, so that a
// single dollar is never more than a dollar: prices and shell variables stay text.

const fenced = "(?:^|\\n) {0,3}(?<fence>`{3,}|~{3,})[^\\n]*(?:[\\s\\S]*?\\n {0,3}\\k<fence>[`~]*[ \\t]*(?=\\n|$)|[\\s\\S]*$)";
const span = "(?<!`)(?<ticks>`+)(?!`)[\\s\\S]*?(?<!`)\\k<ticks>(?!`)";
const isCode = new RegExp(`${fenced}|${span}`, "g");

const block = String.raw`\\\[(?<bracket>[\s\S]{1,4000}?)\\\]`;
const inline = String.raw`\\\((?<round>[\s\S]{1,1000}?)\\\)`;
const double = String.raw`\$\$(?<double>(?:\\[\s\S]|[^$\\]){1,4000}?)\$\$`;
const single = String.raw`(?<![\p{L}\p{N}$])\$(?=[^\s$])(?<single>(?:\\[\s\S]|[^$\\\n]){1,1000}?)(?<=\S)\$(?![\p{L}\p{N}$])`;
const isMarked = new RegExp(`${block}|${inline}|\\\\[\\s\\S]|${double}|${single}|\\$\\$+`, "gu");

/** mayHaveMath is a quick look: a text without these marks needs no formulas. */
export const mayHaveMath = (text: string): boolean => /\$[^$]*\$|\\\(|\\\[/.test(text);

const signs = /[\\^_=<>{}+*|]/;

/** isMath distinguishes a formula from words and prices between two marks. */
export function isMath(tex: string): boolean {
  const text = tex.trim();
  if (!text) return false;
  if (/^\d/.test(text)) return signs.test(text) || /^\d+([.,]\d+)*$/.test(text);
  if (signs.test(text)) return true;
  return !/\p{L}{3,}.*\s.*\p{L}{3,}/su.test(text) && !/^[A-Z_][A-Z0-9_]+$/.test(text);
}

type Groups = Record<"bracket" | "round" | "double" | "single", string | undefined>;

/** mathMarks gives every formula two dollars, on lines of their own where it stands on its own. */
export function mathMarks(text: string): string {
  let out = "";
  let at = 0;
  for (const code of text.matchAll(isCode)) {
    out += mark(text.slice(at, code.index)) + code[0];
    at = code.index + code[0].length;
  }
  return out + mark(text.slice(at));
}

function mark(text: string): string {
  return text.replace(isMarked, (found: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Groups;
    const [index, whole] = [rest.at(-3) as number, rest.at(-2) as string];
    const tex = groups.bracket ?? groups.round ?? groups.double ?? groups.single;
    if (tex === undefined) return found.startsWith("$$") ? found.replaceAll("$", "\\$") : found;
    if (!isMath(tex)) return groups.double === undefined ? found : found.replaceAll("$", "\\$");
    const display = groups.bracket !== undefined || groups.double !== undefined;
    const indent = /(?:^|\n)([ \t>]*)$/.exec(whole.slice(0, index))?.[1];
    const alone = indent !== undefined && /^[ \t]*(\n|$)/.test(whole.slice(index + found.length));
    if (!display || !alone) return `$$${tex.trim().replaceAll(/\s*\n\s*/g, " ")}$$`;
    return `$$\n${tex.trim().split("\n").map((line) => `${indent}${line.trim()}`).join("\n")}\n${indent}$$`;
  });
}
