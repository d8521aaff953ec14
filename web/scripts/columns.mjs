// Fails on a source line that nobody can read without scrolling. Generated types and tables of tests are not read that way.
import { readdirSync, readFileSync } from "node:fs";

const widest = 160;
const files = readdirSync("src", { recursive: true }).filter((file) => /\.tsx?$/.test(file) && !/openapi\.ts$|\.test\.ts$/.test(file));
const long = files.flatMap((file) =>
  readFileSync(`src/${file}`, "utf8")
    .split("\n")
    .flatMap((line, at) => ([...line].length > widest ? [`src/${file}:${at + 1}: ${[...line].length} columns`] : [])),
);
if (long.length) {
  console.error(`lines of more than ${widest} columns:\n${long.join("\n")}`);
  process.exit(1);
}
