import { prefs } from "../state/prefs";
import { Store, useStore } from "../state/store";
import { en, type Key } from "./en";
import { phrases } from "./phrases";

export type { Key } from "./en";

/** texts are those of the chosen language. English is always there, another one comes in a file of its own. */
const texts = new Store<Record<Key, string>>(en as Record<Key, string>);

/** speak fetches the chosen language; until it is there, and where it cannot be had, the page speaks English. */
export async function speak(): Promise<void> {
  const wanted = prefs.get().language;
  const english = en as Record<Key, string>; // with those of what is here
  const found = wanted === "zh" ? await import("./zh").catch(() => undefined) : undefined;
  if (prefs.get().language !== wanted) return;
  phrases.set(found?.zhPhrases);
  texts.set(found?.zh ?? english);
}

prefs.subscribe(() => void speak());

/** t is a text in the chosen language, with {names} filled in. */
export function t(key: Key, values?: Record<string, string | number>): string {
  const text: string = texts.get()[key];
  return values ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)) : text;
}

/** maybe is for names that come from the server: an unknown one is shown as it is. */
export const maybe = (prefix: string, name: string): string => (`${prefix}.${name}` in en ? t(`${prefix}.${name}` as Key) : name.replaceAll("_", " "));

/** useLanguage makes a component follow a change of language. */
export const useLanguage = (): unknown => useStore(texts);
