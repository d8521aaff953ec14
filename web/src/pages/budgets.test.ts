import { expect, test } from "vitest";
import { used } from "./budgets";

test("the limit that is nearer counts", () => {
  expect(used({ limit_micros: 100, limit_tokens: 1000 }, { micros: 50, tokens: 900 })).toBe(0.9);
  expect(used({ limit_micros: 100 }, { micros: 150, tokens: 900 })).toBe(1.5);
  expect(used({ limit_tokens: 1000 }, { micros: 150, tokens: 0 })).toBe(0);
});
