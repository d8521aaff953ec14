import { Store } from "../state/store";

/** sharing is the session whose share links are shown. */
export const sharing = new Store<string | undefined>(undefined);
