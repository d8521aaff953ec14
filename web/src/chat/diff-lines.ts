import type { FileChange } from "../api/types";

// What of a change a person sees before they allow it. The agent wrote it, so nothing is left out for what it looks like:
// only the header that a patch may begin with is, whose names stand in the heading, and only where a hunk follows it.
const header = /^(diff --git |index |--- |\+\+\+ |new file mode |deleted file mode |Index: |=+$)/;
const hunk = /^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/;

export interface DiffLine {
  kind: "same" | "added" | "removed" | "hunk";
  text: string;
}

const kinds: Record<string, DiffLine["kind"]> = { "+": "added", "-": "removed" };

/** linesOf reads a patch with or without a header, or a new or deleted file as lines that are all marked, or as its bare text. */
export function linesOf({ kind, diff }: FileChange): DiffLine[] {
  if (!diff) return [];
  const lines = diff.replace(/\n$/, "").split("\n");
  const begin = lines.findIndex((line) => !header.test(line));
  const patch = begin >= 0 && hunk.test(lines[begin]!);
  const bare = kind !== "update" && !patch && !lines.every((line) => /^[+\-\\]/.test(line));
  const mark = kind === "delete" ? "-" : "+";
  return lines.slice(patch ? begin : 0).map((line) => {
    const text = bare ? mark + line : line;
    return { text, kind: patch && hunk.test(text) ? "hunk" : (kinds[text[0] ?? ""] ?? "same") };
  });
}

export interface Stat {
  added: number;
  removed: number;
}

export function diffStat(changes: FileChange[]): Stat {
  const stat = { added: 0, removed: 0 };
  for (const { kind } of changes.flatMap(linesOf)) if (kind === "added" || kind === "removed") stat[kind]++;
  return stat;
}
