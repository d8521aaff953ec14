import { type RefObject, useDeferredValue, useEffect, useMemo, useRef } from "react";
import { useStore } from "../../state/store";
import { useReading } from "../context";
import type { Row } from "../rows";
import { hitsIn, indexOf } from "./hits";
import { paint, reveal, wipe } from "./paint";
import { find, finding } from "./state";

const page = 50; // runs that are read at once while a search wants them all
const settling = 800; // ms in which rows around a hit may still change their heights

/** useFinder searches a chat: what is drawn and what is not, and by and by what was not read yet. */
export function useFinder(rows: Row[], scroller: RefObject<HTMLElement | null>, jump: (key: string) => void) {
  const conversation = useReading();
  const state = useStore(finding);
  const history = useStore(conversation.history);
  const on = state.chat === conversation.id;
  const text = useDeferredValue(on ? state.text.trim() : "");
  const hits = useMemo(() => (text ? hitsIn(rows, text) : []), [rows, text]);
  const at = indexOf(hits, state.now);
  const more = on && text !== "" && history.cursor !== undefined && !history.problem;

  useEffect(() => {
    if (more && history.state === "idle") void conversation.loadOlder(page);
  }, [conversation, more, history]);

  // Where the reader was: when the search began, at the hit that was stepped to, or where they scrolled to since. Letters that
  // are typed after the first do not change it: older messages that are read meanwhile move everything.
  const sight = useRef<string>(undefined);
  const moved = useRef(false);
  useEffect(() => {
    if (on && text && sight.current && !moved.current) return;
    moved.current = false;
    const top = scroller.current?.getBoundingClientRect().top ?? 0;
    const drawn = [...(scroller.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    sight.current = drawn.find((it) => it.getBoundingClientRect().bottom > top)?.dataset.row;
  }, [on, text, scroller]);

  // The first hit from there on; above it the nearest.
  useEffect(() => {
    if (!on || at >= 0 || hits.length === 0) return;
    const places = new Map(rows.map((row, index) => [row.key, index]));
    const first = places.get(sight.current ?? "") ?? rows.length;
    find.at(hits.find((it) => places.get(it.key)! >= first) ?? hits.at(-1)!);
  }, [on, at, hits, rows]);

  const step = (by: 1 | -1) => {
    const next = hits[(Math.max(at, 0) + by + hits.length) % hits.length];
    if (!next) return;
    sight.current = next.key;
    find.at(next);
  };

  // The row of a hit is drawn after the jump to it, opened after that, and its place is known last.
  const wanted = useRef({ until: 0 });
  const now = on ? state.now : undefined;
  const latest = useRef({ jump, now, text });
  latest.current = { jump, now, text };
  useEffect(() => {
    if (!now) return;
    wanted.current.until = Date.now() + settling;
    latest.current.jump(now.key);
  }, [now]);

  useEffect(() => {
    const list = scroller.current;
    if (!on || !list) return;
    let frame = 0;
    const draw = () => {
      frame = 0;
      const current = paint(list, latest.current.text, latest.current.now);
      if (current && Date.now() < wanted.current.until) reveal(current, list);
    };
    const soon = () => {
      frame ||= requestAnimationFrame(draw);
    };
    const changed = new MutationObserver(soon);
    changed.observe(list, { childList: true, subtree: true, characterData: true });
    const stay = () => {
      wanted.current.until = 0; // the reader moves on
      moved.current = true;
    };
    list.addEventListener("wheel", stay, { passive: true });
    list.addEventListener("pointerdown", stay);
    soon();
    return () => {
      cancelAnimationFrame(frame);
      changed.disconnect();
      list.removeEventListener("wheel", stay);
      list.removeEventListener("pointerdown", stay);
      wipe();
    };
  }, [on, text, now, scroller]);

  useEffect(() => () => find.close(), [conversation]);
  return { on, count: hits.length, at: at + 1, more, step, opened: state.opened };
}
