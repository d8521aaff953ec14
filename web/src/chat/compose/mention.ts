import type { FoundFile } from "../../api/types";
import type { Suggestion } from "./slash";

/** mentionIn is the file that is being named at the caret: `@` after a space, up to the caret. */
export function mentionIn(text: string, caret: number): { from: number; query: string } | undefined {
  const found = /(?:^|[\s([{"'`])@([^\s@"']*)$/.exec(text.slice(0, caret));
  if (!found || /^[^\s)\]}.,;:"'`]/.test(text.slice(caret))) return undefined;
  return { from: caret - found[1]!.length - 1, query: found[1]! };
}

/** spelled is a path in a text: one with a space stands in quotes. */
const spelled = (path: string): string => (/\s/.test(path) ? `@"${path}"` : `@${path}`);

export const suggestFiles = (files: FoundFile[], from: number, caret: number): Suggestion[] =>
  files.map(({ path, kind }) => ({
    id: path,
    text: kind === "directory" ? `${path}/` : path,
    // A directory is the beginning of a path: what is in it is asked for next.
    insert: kind === "directory" && !/\s/.test(path) ? `@${path}/` : `${spelled(path)} `,
    from,
    to: caret,
  }));
