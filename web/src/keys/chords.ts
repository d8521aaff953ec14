/** Chord is a key with what is held with it. `mod` is Command on a Mac and Control elsewhere. */
export interface Chord {
  key: string;
  mod?: boolean;
  shift?: boolean;
}

export type ShortcutName = "palette" | "overview" | "new" | "composer" | "next" | "previous" | "stop" | "chats" | "details" | "changes" | "find";

interface Shortcut {
  name: ShortcutName;
  chords: Chord[];
}

/**
 * shortcuts are the keys of the page. A chord with `mod` types nothing and works everywhere; a bare key works only where
 * nobody types. Browsers keep Mod+N, Mod+T and Mod+W for themselves.
 */
export const shortcuts: Shortcut[] = [
  { name: "palette", chords: [{ key: "k", mod: true }] },
  { name: "overview", chords: [{ key: "?" }, { key: "/", mod: true }] },
  { name: "new", chords: [{ key: "n" }, { key: "o", mod: true, shift: true }] },
  { name: "composer", chords: [{ key: "i" }, { key: ";", mod: true }] },
  { name: "next", chords: [{ key: "j" }] },
  { name: "previous", chords: [{ key: "k" }] },
  { name: "stop", chords: [{ key: ".", mod: true }] },
  { name: "chats", chords: [{ key: "[" }] },
  { name: "details", chords: [{ key: "]" }] },
  { name: "changes", chords: [{ key: "d" }] },
  { name: "find", chords: [{ key: "f", mod: true }] },
];

export const isMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform ?? "");

type Press = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey"> & { isComposing?: boolean; repeat?: boolean };

/** matches compares a press with a chord. A bare key is compared by what it types, so Shift is part of it: `?` has it on most keyboards and not on all. */
export function matches(press: Press, chord: Chord, mac = isMac): boolean {
  if (press.altKey || press.isComposing) return false; // Alt types other letters, and AltGr is Control with Alt
  const mod = mac ? press.metaKey : press.ctrlKey;
  const other = mac ? press.ctrlKey : press.metaKey;
  if (other || mod !== !!chord.mod) return false;
  // Where a mark stands on the keyboard, and whether it needs Shift, differs by country.
  if (chord.mod) return press.key.toLowerCase() === chord.key && (press.shiftKey === !!chord.shift || !/[a-z]/.test(chord.key));
  return press.key === chord.key;
}

// A field that keys are typed into. A button or a check box takes no letters.
const silentInputs = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);

/** isTyping: a bare key belongs to this element. A select takes letters too: they choose. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("[role=menu],[role=listbox],[role=application]")) return true;
  if (target instanceof HTMLInputElement) return !silentInputs.has(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** shortcutOf finds what a press means where it was made. */
export function shortcutOf(press: Press, target: EventTarget | null, mac = isMac): ShortcutName | undefined {
  const typing = isTyping(target);
  return shortcuts.find((it) => it.chords.some((chord) => (chord.mod || !typing) && matches(press, chord, mac)))?.name;
}

/** spell is a chord as a person reads it. */
export function spell(chord: Chord, mac = isMac): string[] {
  const key = chord.key.length === 1 ? chord.key.toUpperCase() : chord.key;
  return [...(chord.mod ? [mac ? "⌘" : "Ctrl"] : []), ...(chord.shift ? [mac ? "⇧" : "Shift"] : []), key];
}

export const chordsOf = (name: ShortcutName): Chord[] => shortcuts.find((it) => it.name === name)!.chords;
