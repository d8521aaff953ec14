import { expect, it } from "vitest";
import table from "../../../internal/plain/table.json";
import { line, plain, plainAll } from "./plain";

it("shows what is hidden, as the program's commands do", () => {
  expect(table.length).toBeGreaterThanOrEqual(10);
  for (const row of table) {
    expect(line(row.in)).toBe(row.line);
    expect(plain(row.in)).toBe(row.text ?? row.line);
  }
});

it("reaches every text of an ask", () => {
  expect(plainAll({ command: "a\u202eb", changes: [{ path: "\u200b", kind: "add" }], tool: { input: { "k\u001b": 1 } } })).toEqual({
    command: "a\\u202eb",
    changes: [{ path: "\\u200b", kind: "add" }],
    tool: { input: { "k\\u001b": 1 } },
  });
});
