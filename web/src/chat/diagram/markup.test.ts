import { expect, it } from "vitest";
import { hasMarkup } from "./markup";

it("finds tags however they are spelled", () => {
  for (const text of ["A[<img src=x>]", "A[<<img src=x onerror=alert(1)>>]", "A[#lt;b#gt;]", "A[&lt;b&gt;]", "A[#60;b]", "A[&#60;b]", "A[&#x3c;b]", "< script>", "</svg>", "<!--"])
    expect(hasMarkup(text), text).toBe(true);
});
it("leaves arrows, stereotypes and line breaks alone", () => {
  for (const text of ["A <--> B", "A <|-- B", "a <= b", "class A { <<interface>> }", "A[one<br/>two<br>three]", "A --> B", "A-->>B: 1 < 2", "#quot;x#quot;"])
    expect(hasMarkup(text), text).toBe(false);
});
