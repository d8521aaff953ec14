import { prefs } from "../state/prefs";
import { useStore } from "../state/store";
import { en, type Key } from "./en";
import { zh } from "./zh";

export type { Key } from "./en";

/** t is a text in the chosen language, with {names} filled in. */
export function t(key: Key, values?: Record<string, string | number>): string {
  const text: string = (prefs.get().language === "zh" ? zh : en)[key];
  return values ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)) : text;
}

/** maybe is for names that come from the server: an unknown one is shown as it is. */
export const maybe = (prefix: string, name: string): string => (`${prefix}.${name}` in en ? t(`${prefix}.${name}` as Key) : name.replaceAll("_", " "));

/** useLanguage makes a component follow a change of language. */
export const useLanguage = (): string => useStore(prefs, (it) => it.language);
