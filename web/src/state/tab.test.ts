import { expect, it } from "vitest";
import { titleFor } from "./tab";

it.each([
  [{ title: "", running: false }, 0, "thole"],
  [{ title: "Mend the tests", running: false }, 0, "Mend the tests · thole"],
  [{ title: "Mend the tests", running: true }, 0, "● Mend the tests · thole"],
  [{ title: "Mend the tests", running: true }, 2, "(2) ● Mend the tests · thole"],
  [{ title: "😀".repeat(70), running: false }, 0, `${"😀".repeat(60)} · thole`],
])("the tab is called %j with %i questions", (tab, open, title) => expect(titleFor(tab, open)).toBe(title));
