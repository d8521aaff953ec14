import { Store } from "../state/store";

/** Opened is what the keyboard has put over the page. */
export type Opened = "palette" | "overview" | "rename";

export const opened = new Store<Opened | undefined>(undefined);

// A dialog reports its end late, when another may be open already: each closes only itself.
const closer = (what: Opened) => () => opened.set((now) => (now === what ? undefined : now));
export const closing: Record<Opened, () => void> = { palette: closer("palette"), overview: closer("overview"), rename: closer("rename") };
