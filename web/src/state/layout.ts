import { type PanelName, prefs, setPrefs } from "./prefs";
import { Store } from "./store";

/** layout is what covers the chat on a small screen. On a wide one there is room, and the preferences say what stands there. */
export const layout = new Store({ chats: false, details: false });

const fits = (width: string): boolean => matchMedia(`(min-width: ${width})`).matches;
export const wide = "64rem";
export const medium = "48rem";

export function toggleDetails(): void {
  if (fits(wide)) setPrefs({ panel: !prefs.get().panel });
  else layout.set((old) => ({ ...old, details: !old.details }));
}

export function toggleChats(): void {
  if (fits(medium)) setPrefs({ chats: prefs.get().chats === false });
  else layout.set((old) => ({ ...old, chats: !old.chats }));
}

/** showPanel brings one of the details into sight. */
export function showPanel(tab: PanelName): void {
  setPrefs(fits(wide) ? { tab, panel: true } : { tab });
  if (!fits(wide)) layout.set((old) => ({ ...old, details: true }));
}
