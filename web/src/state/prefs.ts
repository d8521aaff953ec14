import type { Chosen } from "./source";
import { Store } from "./store";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";
export type PanelName = "agent" | "todo" | "ask" | "jobs" | "changes";

/** Prefs are what this browser remembers; nothing here is worth a server's memory. */
export interface Prefs {
  theme: Theme;
  language: Language;
  panel: boolean;
  tab: PanelName;
  provider?: string;
  model?: string;
  profile?: string;
  /** What the last new chat worked on. */
  source?: Chosen;
  /** Changes are shown side by side. */
  split?: boolean;
  /** false: the list of chats is hidden where there would be room for it. */
  chats?: boolean;
  /** false: keys do nothing but in the field they are typed into. */
  shortcuts?: boolean;
  /** Notices of ends and questions, while no tab is seen. */
  notify?: boolean;
}

const place = "thole.prefs";

function read(): Prefs {
  const fallback: Prefs = { theme: "system", language: navigator.language?.startsWith("zh") ? "zh" : "en", panel: true, tab: "agent" };
  try {
    return { ...fallback, ...(JSON.parse(localStorage.getItem(place) ?? "{}") as Partial<Prefs>) };
  } catch {
    return fallback;
  }
}

export const prefs = new Store<Prefs>(read());

export function setPrefs(change: Partial<Prefs>): void {
  prefs.set((old) => ({ ...old, ...change }));
  try {
    localStorage.setItem(place, JSON.stringify(prefs.get()));
  } catch {
    // A browser that keeps nothing still works for this visit.
  }
}

// What is chosen for all tabs counts in all of them; what a tab shows is its own.
addEventListener("storage", (event) => {
  if (event.key !== place) return;
  const { theme, language, notify } = read();
  prefs.set((old) => ({ ...old, theme, language, notify }));
});

const dark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : undefined;

/** followTheme keeps the document in the chosen palette, the system's by default. */
export function followTheme(): void {
  const apply = () => {
    const { theme, language } = prefs.get();
    document.documentElement.dataset.theme = theme === "system" ? (dark?.matches ? "dark" : "light") : theme;
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  };
  apply();
  prefs.subscribe(apply);
  dark?.addEventListener("change", apply);
}
