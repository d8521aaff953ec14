import { expect, test } from "vitest";
import type { UsageGroup } from "../api/types";
import { daysOf } from "./usage";

test("days without runs have their place", () => {
  const sums = (key: string, cost_micros: number): UsageGroup => ({ key, runs: 1, input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0, cost_micros, unpriced_runs: 0, calls: 0, unknown_calls: 0, differing_runs: 0 });
  const bars = daysOf([sums("2026-03-01", 5), sums("2026-02-27", 7)], Date.UTC(2026, 1, 27), 4, (it) => it.cost_micros, String);
  expect(bars.map((it) => `${it.name} ${it.text}`)).toEqual(["2026-02-27 7", "2026-02-28 0", "2026-03-01 5", "2026-03-02 0"]);
});
