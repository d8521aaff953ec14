import { expect, test } from "vitest";
import { money } from "./money";

test("small amounts keep their digits", () => {
  expect(money(0)).toBe("$0.00");
  expect(money(1_234)).toBe("$0.0012");
  expect(money(12_345_678)).toBe("$12.35");
});
