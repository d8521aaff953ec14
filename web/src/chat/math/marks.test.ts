import { expect, it } from "vitest";
import { mathMarks, mayHaveMath } from "./marks";

it("leaves prices, variables and code as they are", () => {
  for (const text of [
    "It costs $5 and $10.",
    "between $5-$10, or 5$ and 10$",
    "from $1,000 to $2,000 a month",
    "set $HOME and $PATH, or $HOME:$PATH",
    "US$5 and A$7 are prices",
    "$5 and 10$ is odd",
    "`$x$` and ``a $y$ b``",
    "```sh\necho $A $B\n```",
    "~~~\n$$x$$\n~~~",
    "an escaped \\$x\\$ stays",
    "\\[not a link\\] and \\(really not one\\)",
    "one $ alone",
  ])
    expect(mathMarks(text), text).toBe(text);
});
it("finds formulas in every notation", () => {
  expect(mathMarks("so $x^2$ and $n$")).toBe("so $$x^2$$ and $$n$$");
  expect(mathMarks("$E = mc^2$, then")).toBe("$$E = mc^2$$, then");
  expect(mathMarks("with $3 + 4 = 7$ here")).toBe("with $$3 + 4 = 7$$ here");
  expect(mathMarks("\\(a_1\\) and \\[b = 2\\]")).toBe("$$a_1$$ and $$b = 2$$");
  expect(mathMarks("\\[\n\\frac{1}{2}\n\\]")).toBe("$$\n\\frac{1}{2}\n$$");
  expect(mathMarks("$$\\sum_i i$$")).toBe("$$\n\\sum_i i\n$$");
  expect(mathMarks("- a\n  $$x = 1$$")).toBe("- a\n  $$\n  x = 1\n  $$");
  expect(mathMarks("costs $5, so $x = 5$")).toBe("costs $5, so $$x = 5$$");
});
it("does not let an open formula swallow the text after it", () => {
  expect(mathMarks("$$\nx = 1\n\nand more")).toBe("\\$\\$\nx = 1\n\nand more");
  expect(mathMarks("$x and more")).toBe("$x and more");
});
it("is quick with a hostile text", () => {
  const start = performance.now();
  mathMarks("$".repeat(20_000));
  mathMarks("$a ".repeat(20_000));
  mathMarks("\\(".repeat(20_000));
  mathMarks("`".repeat(999) + " $x$ ".repeat(5_000));
  expect(performance.now() - start).toBeLessThan(4000);
});
it("knows at once where nothing can be", () => {
  expect(mayHaveMath("plain words for $5")).toBe(false);
  expect(mayHaveMath("$5 and $10")).toBe(true);
});
