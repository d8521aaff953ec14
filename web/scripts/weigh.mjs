// Puts a compressed form next to every file of the build, which is what the server sends, weighs what a browser loads before
// the first chat can be used, and fails above the limit. With --only it weighs the build that is there and writes nothing.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 200 * 1000;
const squeeze = (path) => gzipSync(readFileSync(path), { level: 9 });

for (const file of process.argv.includes("--only") ? [] : readdirSync("dist/assets")) {
  if (/\.(js|css)$/.test(file)) writeFileSync(`dist/assets/${file}.gz`, squeeze(`dist/assets/${file}`));
}
const html = readFileSync("dist/index.html", "utf8");
const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((m) => m[1]);
const weight = files.reduce((sum, file) => sum + squeeze(`dist/${file}`).length, squeeze("dist/index.html").length);
const kb = (weight / 1000).toFixed(1);
if (weight > limit) {
  console.error(`first page: ${kb} kB compressed, more than ${limit / 1000}`);
  process.exit(1);
}
console.log(`first page: ${kb} kB compressed`);
