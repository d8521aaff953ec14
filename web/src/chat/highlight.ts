/** Token is a piece of code and what it is; without a kind it is plain. */
export interface Token {
  text: string;
  kind?: "comment" | "string" | "number" | "keyword" | "added" | "removed";
}

/** A family of languages that a reader distinguishes by the same marks. Not a grammar: it colours, and is wrong at times. */
interface Family {
  comment: string;
  string: string;
  words: Set<string>;
}

const quoted = String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`;
const words = (list: string) => new Set(list.trim().split(/\s+/));

const curly: Family = {
  comment: String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,
  string: quoted + "|`(?:\\\\.|[^`\\\\])*`?",
  words: words(`
    abstract any as async await bool boolean break byte case catch chan char class const continue crate default defer
    delete do double else enum export extends extern false final finally float fn for from func function go goto if impl
    implements import in instanceof int interface let long loop map match mod mut namespace new nil null number of
    override package private protected pub public range readonly ref return select self short static str string struct
    super switch template this throw true try type typedef typeof undefined unsafe use using var virtual void where while
    yield
  `),
};
const hash: Family = {
  comment: String.raw`#[^\n]*`,
  string: String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|` + quoted,
  words: words(`
    and as assert async await begin break case class continue def del do done elif else elsif end esac except exit export
    false fi finally for from function global if import in is lambda local module nil None nonlocal not null or pass raise
    require rescue return self set then True False true try unless until while with yield
  `),
};
const dashes: Family = {
  comment: String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,
  string: quoted,
  words: words(`
    add all alter and as asc begin between by case check column commit create cross default delete desc distinct drop else
    end exists from full group having if in index inner insert into is join key left like limit local not null offset on
    or order outer primary references return right rollback select set table then union unique update values view when
    where with
  `),
};
const marks: Family = { comment: String.raw`<!--[\s\S]*?(?:-->|$)`, string: quoted, words: new Set() };

const families = new Map<string, Family>(
  (
    [
      [curly, "c c++ cpp cs csharp css dart go golang java javascript js json jsonc jsx kotlin php proto rs rust scala scss swift ts tsx typescript"],
      [hash, "bash dockerfile ini makefile perl py python r rb ruby sh shell toml yaml yml zsh"],
      [dashes, "haskell lua mysql postgres sql sqlite"],
      [marks, "html svg vue xml"],
    ] as const
  ).flatMap(([family, names]) => names.split(" ").map((name) => [name, family] as const)),
);

const longest = 50_000;

/** tokens cuts code into pieces whose texts together are the code. */
export function tokens(code: string, language: string): Token[] {
  const wanted = language.toLowerCase();
  if (wanted === "diff" || wanted === "patch") return code.split(/(?<=\n)/).map(line);
  const family = families.get(wanted);
  if (!family || code.length > longest) return [{ text: code }];
  const out: Token[] = [];
  let at = 0;
  for (const found of code.matchAll(new RegExp(`(${family.comment})|(${family.string})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, "g"))) {
    const text = found[0];
    const known = family.words.has(family === dashes ? text.toLowerCase() : text);
    const kind = found[1] ? "comment" : found[2] ? "string" : found[3] ? "number" : known ? "keyword" : undefined;
    if (!kind) continue;
    if (found.index > at) out.push({ text: code.slice(at, found.index) });
    out.push({ text, kind });
    at = found.index + text.length;
  }
  if (at < code.length) out.push({ text: code.slice(at) });
  return out;
}

function line(text: string): Token {
  if (/^(\+\+\+|---|@@)/.test(text)) return { text, kind: "comment" };
  return { text, kind: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : undefined };
}
