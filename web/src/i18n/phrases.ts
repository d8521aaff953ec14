import { Store } from "../state/store";

/** Phrases say in another language what the server says in English. */
export interface Phrases {
  /** A sentence for each class of refusals, for what has no sentence of its own. */
  kinds: Record<string, string>;
  other: string;
  /** What the server's own words stand in, after the sentence of the class. */
  original: string;
  /** Formats of the server's sources, each with its sentence; {1} is what its first verb stands for. */
  sentences: Record<string, string>;
}

/** phrases are those of the chosen language; none are wanted in English. */
export const phrases = new Store<Phrases | undefined>(undefined);

interface Said {
  message: string;
  hint?: string;
  code?: string;
}

interface Rule {
  says: RegExp;
  /** Which groups are errors themselves. */
  inner: boolean[];
  text: string;
  weight: number;
}

/** longest: what is longer was not written by the server alone, and is not looked through. */
const longest = 600;
const verb = /%[+#.\d]*[sdqvwT]/g;

/** ruleOf reads a format of the server's: %w is an error with a sentence of its own, all else is shown as it is. */
function ruleOf([format, text]: [string, string]): Rule {
  const verbs = [...format.matchAll(verb)].map((it) => it[0].at(-1)!);
  const words = format.split(verb);
  const groups = verbs.map((it) => (it === "q" ? '("(?:[^"\\\\]|\\\\.)*")' : it === "d" ? "(-?\\d+)" : "([^]+?)"));
  const says = words.map((it, at) => it.replaceAll("%%", "%").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&") + (groups[at] ?? "")).join("");
  return { says: new RegExp(`^${says}$`), inner: verbs.map((it) => it === "w"), text, weight: words.join("").length };
}

const rules = new WeakMap<Phrases, Rule[]>();

function rulesOf(of: Phrases): Rule[] {
  // The format that says most itself comes first.
  const known = rules.get(of) ?? Object.entries(of.sentences).map(ruleOf).toSorted((a, b) => b.weight - a.weight);
  rules.set(of, known);
  return known;
}

/** inWords is a sentence of the server's in the chosen language, if it is known. */
function inWords(text: string, of: Phrases, depth = 0): string | undefined {
  if (text.length > longest) return undefined;
  for (const { says, inner, text: to } of rulesOf(of)) {
    const found = says.exec(text);
    if (!found) continue;
    const value = (at: number) => (inner[at - 1] && depth < 4 ? inWords(found[at]!, of, depth + 1) : undefined) ?? found[at]!;
    return to.replace(/\{(\d)\}/g, (_, at: string) => value(Number(at)));
  }
  return undefined;
}

/** translated is what the server said in the chosen language: by its sentence, else what kind of refusal it is and its own words. */
export function translated<T extends Said>(said: T): T {
  const of = phrases.get();
  if (!of) return said;
  const hint = said.hint && (inWords(said.hint, of) ?? said.hint);
  const message = inWords(said.message, of);
  if (message !== undefined) return { ...said, message, hint };
  const own = said.message && of.original.replace("{text}", () => said.message);
  return { ...said, message: of.kinds[said.code ?? ""] ?? of.other, hint: [own, hint].filter(Boolean).join("\n") };
}

/** translatedLine is translated for a place that has one line. */
export const translatedLine = (message: string): string => {
  const of = phrases.get();
  return (of && inWords(message, of)) ?? message;
};
