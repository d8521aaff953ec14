import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import Markdown from "../markdown";

afterEach(cleanup);

it("draws formulas, in a line and on their own, and nothing else", async () => {
  const { container } = render(<Markdown text={"Costs $5 and $10, so $x^2$.\n\n$$\n\\frac{1}{2}\n$$\n\n`$y$`\n\n- item\n  \\[ z = 1 \\]"} />);
  await expect.poll(() => container.querySelectorAll(".katex").length, { timeout: 4000 }).toBe(3);
  expect(container.querySelectorAll(".katex-display")).toHaveLength(2);
  expect(container.textContent).toContain("Costs $5 and $10");
  expect(container.querySelector("code")?.textContent).toBe("$y$");
});
it("trusts no link and no endless macro, and shows what it cannot read", async () => {
  const bad = ["\\href{javascript:alert(1)}{x}", "\\def\\a{\\a\\a}\\a", "\\frac{", "\\includegraphics{http://x/y.png}"];
  const { container } = render(<Markdown text={bad.map((it) => `$${it}$`).join("\n\n") + "\n\n$ok^1$"} />);
  await expect.poll(() => container.querySelectorAll(".katex").length).toBeGreaterThan(0);
  expect(container.querySelectorAll("a, img")).toHaveLength(0);
  expect(container.textContent).toContain("\\frac{");
});
