import { useEffect, useState } from "react";
import type { FoundFile } from "../../api/types";
import { mentionIn, suggestFiles } from "./mention";
import { type Command, type Suggestion, suggestCommands } from "./slash";

export type FileSearch = (query: string, signal: AbortSignal) => Promise<FoundFile[]>;

export interface Suggestions {
  kind: "commands" | "files";
  items: Suggestion[];
  at: number;
  setAt: (at: number) => void;
  dismiss: () => void;
}

/** useSuggest is what may be meant at the caret: a command at the beginning, or a file after `@`. */
export function useSuggest(text: string, caret: number, commands: Command[], search: FileSearch | undefined): Suggestions | undefined {
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState<string>();
  const slash = suggestCommands(text, caret, commands);
  const mention = search && slash.length === 0 ? mentionIn(text, caret) : undefined;
  const asked = mention?.query;
  const [found, setFound] = useState<FoundFile[]>([]);

  useEffect(() => {
    setAt(0);
    if (dismissed !== undefined && text !== dismissed) setDismissed(undefined);
  }, [text]);

  useEffect(() => {
    if (asked === undefined || !search) return setFound([]);
    const over = new AbortController();
    const timer = setTimeout(() => {
      search(asked, over.signal).then(
        (files) => !over.signal.aborted && setFound(files),
        () => !over.signal.aborted && setFound([]), // a path can be typed without help
      );
    }, 120);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [asked, search]);

  if (dismissed === text) return undefined;
  const items = slash.length ? slash : mention ? suggestFiles(found, mention.from, caret) : [];
  if (items.length === 0) return undefined;
  return { kind: slash.length ? "commands" : "files", items, at: Math.min(at, items.length - 1), setAt, dismiss: () => setDismissed(text) };
}
