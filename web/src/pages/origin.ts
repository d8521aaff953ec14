import { t, type Key } from "../i18n";
import "../i18n/later";

// What the server calls the places that credentials are from. Names in them (of variables, secrets, services) stay as they are.
const phrases: [RegExp, Key][] = [
  [/^the scripted model of --demo$/, "origin.demo"],
  [/^no key: models that need none$/, "origin.keyless"],
  [/^variable (\S+) of your shell$/, "origin.shell"],
  [/^variable (\S+) of claude's settings$/, "origin.claude"],
  [/^variable (\S+)$/, "origin.variable"],
  [/^vault item (.+)$/, "origin.vault"],
  [/^your login of (.+)$/, "origin.login"],
  [/^opencode's settings$/, "origin.opencode"],
  [/^model provider (.+) of codex's settings$/, "origin.codex"],
  [/^which is not there$/, "origin.gone"],
];

/** originOf says in the chosen language where a credential is from. What is not known is shown as the server says it. */
export const originOf = (words: string): string =>
  words
    .split(", ")
    .map((part) => {
      for (const [phrase, key] of phrases) {
        const found = phrase.exec(part);
        if (found) return t(key, { name: found[1] ?? "" });
      }
      return part;
    })
    .join(t("origin.and"));
