import { describe, expect, it } from "vitest";
import { fieldsOf, read, type Field, type Given } from "./schema";

const one = (property: object, required = false): Field => fieldsOf({ type: "object", properties: { x: property }, required: required ? ["x"] : [] })![0]!;

describe("a schema", () => {
  it("has fields of each type, with what they begin with", () => {
    const properties = {
      name: { type: "string", title: "Your name", description: "As on the box", default: "Ada" },
      n: { type: "integer", minimum: 1, maximum: 9, default: 3 },
      yes: { type: "boolean", default: true },
      size: { type: "string", enum: ["s", "l"], enumNames: ["Small", "Large"], default: "l" },
      hue: { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "g" }] },
      tags: { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1, default: ["b", "no choice"] },
      with: { type: "array", items: { anyOf: [{ const: "m", title: "Milk" }] } },
    };
    const fields = fieldsOf({ type: "object", properties, required: ["n"] })!;
    expect(fields.map((it) => [it.name, it.kind, it.title, it.required, it.initial])).toEqual([
      ["name", "text", "Your name", false, "Ada"],
      ["n", "integer", "n", true, "3"],
      ["yes", "boolean", "yes", false, true],
      ["size", "one", "size", false, "l"],
      ["hue", "one", "hue", false, ""],
      ["tags", "many", "tags", false, ["b"]],
      ["with", "many", "with", false, []],
    ]);
    expect(fields.flatMap((it) => it.choices.map(({ title }) => title))).toEqual(["Small", "Large", "Red", "g", "a", "b", "Milk"]);
  });

  it.each([
    ["a member that is an object", { x: { type: "object" } }],
    ["a list of anything", { x: { type: "array", items: { type: "string" } } }],
    ["choices that are no texts", { x: { type: "string", enum: [1, 2] } }],
    ["a member of several types", { x: { type: ["string", "null"] } }],
    ["a member of no type", { x: {} }],
  ])("with %s is answered as JSON", (_, properties) => expect(fieldsOf({ type: "object", properties })).toBeUndefined());

  it("that needs a member it does not describe is answered as JSON", () => expect(fieldsOf({ properties: {}, required: ["y"] })).toBeUndefined());

  it.each([undefined, null, {}, { properties: {} }, "x", []])("without members has no fields: %j", (schema) => expect(fieldsOf(schema)).toEqual([]));
});

const mail = { type: "string", format: "email" };
const uri = { type: "string", format: "uri" };
const date = { type: "string", format: "date" };
const many = { type: "array", items: { enum: ["a", "b", "c"] }, minItems: 2, maxItems: 2 };

it.each<[string, Field, Given, unknown]>([
  ["a text", one({ type: "string" }), " as typed ", " as typed "],
  ["a text left out", one({ type: "string" }), "", undefined],
  ["a text that is needed", one({ type: "string" }, true), "", { key: "required" }],
  ["too short", one({ type: "string", minLength: 3 }), "ab", { key: "short", n: 3 }],
  ["counted in characters", one({ type: "string", maxLength: 2 }), "🍵🍵", "🍵🍵"],
  ["too long", one({ type: "string", maxLength: 2 }), "abc", { key: "long", n: 2 }],
  ["a number", one({ type: "number" }), " 1.5e2 ", 150],
  ["no number", one({ type: "number" }), "1,5", { key: "number" }],
  ["without end", one({ type: "number" }), "Infinity", { key: "number" }],
  ["a number left out", one({ type: "number" }), " ", undefined],
  ["a number that is needed", one({ type: "number" }, true), "", { key: "required" }],
  ["zero", one({ type: "integer" }, true), "0", 0],
  ["no whole number", one({ type: "integer" }), "1.5", { key: "integer" }],
  ["more than a double holds", one({ type: "integer" }), "9007199254740993", { key: "integer" }],
  ["too small", one({ type: "integer", minimum: 1 }), "0", { key: "least", n: 1 }],
  ["too large", one({ type: "number", maximum: 0 }), "0.1", { key: "most", n: 0 }],
  ["no", one({ type: "boolean" }, true), false, false],
  ["a choice", one({ type: "string", enum: ["a"] }, true), "a", "a"],
  ["no choice where one is needed", one({ type: "string", enum: ["a"] }, true), "", { key: "required" }],
  ["several", one(many), ["a", "c"], ["a", "c"]],
  ["none of several", one(many), [], undefined],
  ["none where some are needed", one(many, true), [], { key: "few", n: 2 }],
  ["too few", one(many), ["a"], { key: "few", n: 2 }],
  ["too many", one(many), ["a", "b", "c"], { key: "many", n: 2 }],
  ["an address", one(mail), "a@example.org", "a@example.org"],
  ["no address", one(mail), "a at b", { key: "email" }],
  ["a link", one(uri), "https://example.org/a", "https://example.org/a"],
  ["no link", one(uri), "example.org", { key: "uri" }],
  ["a day", one(date), "2026-11-20", "2026-11-20"],
  ["no day", one(date), "2026-13-40", { key: "date" }],
  ["another format", one({ type: "string", format: "moon" }), "x", "x"],
])("%s", (_, field, given, expected) => {
  const { value, fault } = read(field, given);
  expect(fault ?? value).toEqual(expected);
});

it("a moment goes to the field in the person's zone and back", () => {
  const field = one({ type: "string", format: "date-time", default: "2026-11-20T10:00:00Z" });
  expect(read(field, field.initial).value).toBe("2026-11-20T10:00:00.000Z");
});
