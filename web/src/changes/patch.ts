// What a unified diff of one file says, line by line.

export interface Line {
  kind: "same" | "added" | "removed" | "note";
  /** Numbers in the file before and after. */
  old?: number;
  now?: number;
  text: string;
}

export interface Hunk {
  header: string;
  lines: Line[];
}

const kinds: Record<string, Line["kind"]> = { " ": "same", "+": "added", "-": "removed", "\\": "note" };

/**
 * hunksOf reads a patch. Lengths in the headers say where a hunk ends, so a line that looks like a header is a line.
 * Nothing after the first header is left out.
 */
export function hunksOf(patch: string): Hunk[] {
  const hunks: Hunk[] = [];
  let hunk: Hunk | undefined;
  let [old, now, oldLeft, nowLeft] = [0, 0, 0, 0];
  for (const text of patch.replace(/\n$/, "").split("\n")) {
    const open = hunk !== undefined && (oldLeft > 0 || nowLeft > 0 || text.startsWith("\\"));
    const head = open ? null : /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (head) {
      [old, now] = [Number(head[1]), Number(head[3])];
      [oldLeft, nowLeft] = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
      hunks.push((hunk = { header: text, lines: [] }));
      continue;
    }
    if (!hunk) continue; // what stands before the first hunk is in the heading
    const mark = kinds[text[0] ?? " "];
    const kind = mark ?? "same";
    const line: Line = { kind, text: mark ? text.slice(1) : text };
    if (kind === "same" || kind === "removed") [line.old, oldLeft] = [old++, oldLeft - 1];
    if (kind === "same" || kind === "added") [line.now, nowLeft] = [now++, nowLeft - 1];
    hunk.lines.push(line);
  }
  return hunks;
}

export interface Pair {
  left?: Line;
  right?: Line;
}

/** pairsOf sets what was removed next to what came in its place. */
export function pairsOf(lines: Line[]): Pair[] {
  const pairs: Pair[] = [];
  let open = 0; // from here on pairs wait for their right side
  for (const line of lines) {
    if (line.kind === "removed") pairs.push({ left: line });
    else if (line.kind === "added") {
      while (open < pairs.length && pairs[open]!.right) open++;
      if (open < pairs.length) pairs[open]!.right = line;
      else pairs.push({ right: line });
    } else if (line.kind === "same") {
      pairs.push({ left: line, right: line });
      open = pairs.length;
    }
  }
  return pairs;
}

/** Comment is what a person says about lines of a changed file. */
export interface Comment {
  id: string;
  path: string;
  side: "old" | "now";
  from: number;
  to: number;
  code: string[];
  text: string;
}

/** plainPath shows a name on one line, whatever is in it. */
export const plainPath = (path: string): string => (path.search(unseen) < 0 ? path : JSON.stringify(path).replace(unseen, escape));

const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

const escape = (one: string): string => `\\u${one.codePointAt(0)!.toString(16).padStart(4, "0")}`;

/** placeOf is where a comment stands, as compilers write it. */
export const placeOf = ({ path, from, to }: Comment): string => `${plainPath(path)}:${from}${to > from ? `-${to}` : ""}`;

/** messageOf makes one message of all comments. */
export const messageOf = (comments: Comment[], removed: string): string =>
  comments
    .map((it) => [`${placeOf(it)}${it.side === "old" ? ` (${removed})` : ""}`, ...it.code.map((line) => `> ${line}`), "", it.text.trim()].join("\n"))
    .join("\n\n");
