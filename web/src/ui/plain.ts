// Characters that are never shown as they are where a person decides: controls, formats (bidi, zero width, tags) and
// whatever else is drawn as nothing. internal/plain has the same rule, and both pass the same table.
const hidden = /(?!\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const short: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

const unit = (code: number) => `\\u${code.toString(16).padStart(4, "0")}`;
const escaped = (found: string) => short[found] ?? Array.from({ length: found.length }, (_, i) => unit(found.charCodeAt(i))).join("");

/** line is text for a place of one line. */
export const line = (text: string) => text.replace(hidden, escaped);

/** plain is text for a place of many lines. */
export const plain = (text: string) => text.replaceAll("\r\n", "\n").replace(hidden, (found) => (found === "\n" || found === "\t" ? found : escaped(found)));

/** plainAll is a value with all its texts plain, for looking at only. */
export function plainAll<T>(value: T): T {
  if (typeof value === "string") return plain(value) as T;
  if (Array.isArray(value)) return value.map(plainAll) as T;
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, it]) => [plain(key), plainAll(it)])) as T;
  return value;
}
