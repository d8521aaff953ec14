import { Store } from "../../state/store";

/** Spot is one place of a found text: the row, and which of its hits. */
export interface Spot {
  key: string;
  nth: number;
}

export interface Find {
  /** The chat that is searched; unset: none is. */
  chat?: string;
  text: string;
  now?: Spot;
  /** Rows that were opened because a hit was inside. */
  opened: ReadonlySet<string>;
  /** Rises when the field is wanted again. */
  asked: number;
}

const none: Find = { text: "", opened: new Set(), asked: 0 };

export const finding = new Store<Find>(none);

export const find = {
  /** open shows the field; what was looked for last stands in it. */
  open: (chat: string): void =>
    finding.set((old) => ({ ...old, ...(old.chat === chat ? {} : { opened: none.opened, now: undefined }), chat, asked: old.asked + 1 })),
  close: (): void => finding.set((old) => ({ ...none, text: old.text, asked: old.asked })),
  type: (text: string): void => finding.set((old) => ({ ...old, text, now: undefined })),
  at: (now: Spot): void =>
    finding.set((old) => ({ ...old, now, opened: old.opened.has(now.key) ? old.opened : new Set([...old.opened, now.key]) })),
};
