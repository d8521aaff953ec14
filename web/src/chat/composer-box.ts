import type { ComposerHandle } from "./composer";

/** composerBox is how panels and keys reach the input: the composer belongs to the chat. */
export const composerBox: { current: ComposerHandle | null } = { current: null };
