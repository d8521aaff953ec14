import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Builds the binary once, with the UI that lies in web/dist, and the one without its guards that attacks are shown to succeed on, unless THOLE_BIN and THOLE_UNGUARDED_BIN name them. */
export default function build(): void {
  const dir = mkdtempSync(join(tmpdir(), "thole-bin-"));
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const make = (name: string, ...flags: string[]) => {
    // As make build does, so that what it compiled counts here too.
    execFileSync("go", ["build", "-trimpath", ...flags, "-o", join(dir, name), "./cmd/thole"], { cwd: root, stdio: "inherit", env: { ...process.env, CGO_ENABLED: "0" } });
    return join(dir, name);
  };
  process.env.THOLE_BIN ??= make("thole");
  process.env.THOLE_UNGUARDED_BIN ??= make("thole-unguarded", "-tags", "thole_unguarded");
}
