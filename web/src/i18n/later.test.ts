import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { en } from "./en";
import { enLater } from "./en-later";

// Before anything imported later.ts: this file does not.
it("texts of the first page and of later parts are two sets", () => {
  expect(Object.keys(enLater).filter((key) => key in en)).toEqual([]);
});

it("every part that says a later text brings it", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((it) => /\.tsx?$/.test(it) && !/\.test\.|i18n\/|openapi/.test(it));
  const keys = Object.keys(enLater);
  const wrong = files.filter((file) => {
    const source = readFileSync(`src/${file}`, "utf8");
    if (/import "[./]+i18n\/later";/.test(source)) return false;
    const beginnings = [...source.matchAll(/`([a-z]\w*\.[\w.]*)\$\{/gi)].map((it) => it[1]!);
    return keys.some((key) => source.includes(`"${key}"`) || beginnings.some((it) => key.startsWith(it)));
  });
  expect(wrong).toEqual([]);
});
