// Weighs what a browser loads before the first chat can be used and fails above the limit.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 350 * 1024;
const html = readFileSync("dist/index.html", "utf8");
const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((m) => m[1]);
const weight = files.reduce((sum, file) => sum + gzipSync(readFileSync(`dist/${file}`)).length, gzipSync(html).length);
const kib = (weight / 1024).toFixed(1);
if (weight > limit) {
  console.error(`first page: ${kib} KiB compressed, more than ${limit / 1024}`);
  process.exit(1);
}
console.log(`first page: ${kib} KiB compressed`);
