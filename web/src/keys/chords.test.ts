import { describe, expect, it } from "vitest";
import { shortcutOf, shortcuts } from "./chords";

const press = (key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "altKey" | "shiftKey" | "isComposing", boolean>> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...held,
});
const element = (html: string): Element => {
  document.body.innerHTML = html;
  return document.body.firstElementChild!;
};

describe("shortcutOf", () => {
  it("never takes a bare key from a user who types", () => {
    const fields = ["<input>", "<input type=search>", "<textarea></textarea>", "<select></select>", "<div contenteditable=true></div>"].map(element);
    for (const field of fields)
      for (const { chords } of shortcuts)
        for (const { key } of chords.filter((it) => !it.mod)) expect(shortcutOf(press(key), field, false), `${key} in ${field.tagName}`).toBeUndefined();
  });
  it("takes bare keys where nothing is typed", () => {
    for (const html of ["<button></button>", "<input type=checkbox>", "<div tabindex=0></div>"]) expect(shortcutOf(press("n"), element(html), false)).toBe("new");
    expect(shortcutOf(press("?", { shiftKey: true }), document.body, false)).toBe("overview");
  });
  it("takes chords everywhere, by the machine's own key", () => {
    const field = element("<textarea></textarea>");
    expect(shortcutOf(press("k", { ctrlKey: true }), field, false)).toBe("palette");
    expect(shortcutOf(press("K", { ctrlKey: true }), field, false)).toBe("palette"); // caps lock
    expect(shortcutOf(press("k", { metaKey: true }), field, true)).toBe("palette");
    expect(shortcutOf(press("k", { ctrlKey: true }), field, true)).toBeUndefined(); // a Mac deletes to the line's end with it
    expect(shortcutOf(press("O", { ctrlKey: true, shiftKey: true }), field, false)).toBe("new");
    expect(shortcutOf(press("o", { ctrlKey: true }), field, false)).toBeUndefined();
  });
  it("leaves an input method, Alt and AltGr alone", () => {
    expect(shortcutOf(press("k", { ctrlKey: true, isComposing: true }), document.body, false)).toBeUndefined();
    expect(shortcutOf(press("[", { ctrlKey: true, altKey: true }), document.body, false)).toBeUndefined();
    expect(shortcutOf(press("n", { altKey: true }), document.body, false)).toBeUndefined();
    expect(shortcutOf(press("n", { ctrlKey: true }), document.body, false)).toBeUndefined(); // a new window
  });
  it("means one thing by each key", () => {
    const all = shortcuts.flatMap(({ chords }) => chords.map((it) => `${it.mod} ${it.shift} ${it.key}`));
    expect(new Set(all).size).toBe(all.length);
  });
});
