import { expect, it } from "vitest";
import type { Session } from "../api/types";
import { grouped } from "./groups";

const chat = (id: string, updated_at: string, pinned = false) => ({ id, updated_at, pinned }) as Session;

it("pinned chats come first, however old, and the rest by day", () => {
  const now = new Date(2026, 4, 20, 12);
  const at = (days: number) => new Date(2026, 4, 20 - days, 9).toISOString();
  const groups = grouped([chat("p", at(300), true), chat("a", at(0)), chat("b", at(1)), chat("c", at(3)), chat("d", at(30))], now);
  expect(groups.map(([name, items]) => `${name}: ${items.map((it) => it.id)}`)).toEqual([
    "group.pinned: p",
    "group.today: a",
    "group.yesterday: b",
    "group.week: c",
    "group.older: d",
  ]);
});
