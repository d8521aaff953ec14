import { useEffect, useRef } from "react";

/** fieldID is the field in which messages are written. */
export const fieldID = "message";

const modal = (): boolean => document.querySelector("dialog[open]") !== null;

/** toField puts the caret where the next message is written. A touch screen would open its keyboard for it, so it stays. */
export function toField(): void {
  if (!modal() && !matchMedia("(pointer: coarse)").matches) document.getElementById(fieldID)?.focus({ preventScroll: true });
}

let arrived = false;

/** useArrival goes to the field when another chat was chosen; a page that was just loaded begins where pages begin. */
export function useArrival(chat: unknown): void {
  useEffect(() => {
    if (arrived) toField();
    arrived = true;
  }, [chat]);
}

/** useEscape calls act for an Escape that nothing else wanted: no dialog, no menu, no other field, no half-written word. */
export function useEscape(wanted: boolean, act: () => void): void {
  const now = useRef(act);
  now.current = act;
  useEffect(() => {
    if (!wanted) return;
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.repeat || modal()) return;
      const at = event.target instanceof HTMLElement ? event.target : undefined;
      const elsewhere = at?.closest("input, textarea, select, [role=menu], [role=listbox]");
      if (elsewhere && elsewhere.id !== fieldID) return;
      now.current();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [wanted]);
}

/** useBack lets the browser's own way back close what covers the page, instead of leaving the page under it. */
export function useBack(open: boolean, close: () => void): void {
  const now = useRef(close);
  now.current = close;
  useEffect(() => {
    if (!open) return;
    history.pushState({ over: true }, "");
    let left = false;
    const back = () => {
      left = true;
      now.current();
    };
    addEventListener("popstate", back);
    return () => {
      removeEventListener("popstate", back);
      if (!left && isOver()) history.back();
    };
  }, [open]);
}

/** isOver: the newest entry of the history stands only for something that covers the page. */
export const isOver = (): boolean => (history.state as { over?: boolean } | null)?.over === true;
