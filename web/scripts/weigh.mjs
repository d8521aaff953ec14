// Puts a compressed form next to every file of the build, which is what the server sends, weighs what a browser loads before
// the first chat can be used, and fails above the limit.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 350 * 1024;
const squeeze = (path) => gzipSync(readFileSync(path), { level: 9 });

for (const file of readdirSync("dist/assets")) {
  if (/\.(js|css)$/.test(file)) writeFileSync(`dist/assets/${file}.gz`, squeeze(`dist/assets/${file}`));
}
const html = readFileSync("dist/index.html", "utf8");
const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((m) => m[1]);
const weight = files.reduce((sum, file) => sum + squeeze(`dist/${file}`).length, squeeze("dist/index.html").length);
const kib = (weight / 1024).toFixed(1);
if (weight > limit) {
  console.error(`first page: ${kib} KiB compressed, more than ${limit / 1024}`);
  process.exit(1);
}
console.log(`first page: ${kib} KiB compressed`);
