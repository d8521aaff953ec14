import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Builds the binary once, with the UI that lies in web/dist, unless THOLE_BIN names one. */
export default function build(): void {
  if (process.env.THOLE_BIN) return;
  const bin = join(mkdtempSync(join(tmpdir(), "thole-bin-")), "thole");
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  execFileSync("go", ["build", "-o", bin, "./cmd/thole"], { cwd: root, stdio: "inherit" });
  process.env.THOLE_BIN = bin;
}
