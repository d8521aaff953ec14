import type { Session } from "../api/types";
import type { Key } from "../i18n";

/** grouped puts pinned chats first, and others by the day they last changed. */
export function grouped(items: Session[], now = new Date()): [Key, Session[]][] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const day = 86_400_000;
  const groups: [Key, number][] = [
    ["group.today", midnight],
    ["group.yesterday", midnight - day],
    ["group.week", midnight - 7 * day],
    ["group.older", -Infinity],
  ];
  const out = new Map<Key, Session[]>();
  for (const item of items) {
    const at = Date.parse(item.updated_at);
    const [group] = item.pinned ? (["group.pinned"] as const) : groups.find(([, from]) => at >= from)!;
    out.set(group, [...(out.get(group) ?? []), item]);
  }
  return [["group.pinned"] as const, ...groups].flatMap(([group]) => (out.has(group) ? [[group, out.get(group)!] as [Key, Session[]]] : []));
}

/** Selected are the ids that were chosen; undefined: nobody chooses. */
export type Selected = ReadonlySet<string> | undefined;

/** between are the ids from one entry to another, both included, as they stand in the list. */
export function between(items: Session[], from: string | undefined, to: string): string[] {
  const ends = [items.findIndex((it) => it.id === (from ?? to)), items.findIndex((it) => it.id === to)].sort((a, b) => a - b);
  return items.slice(Math.max(0, ends[0]!), ends[1]! + 1).map((it) => it.id);
}
