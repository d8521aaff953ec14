import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Project } from "./project.ts";

export interface Pull {
  Number: number;
  Title: string;
  Body: string;
  Head: string;
  Base: string;
  Draft: boolean;
}

/** Forge is a server of bare repositories with GitHub's API. */
export class Forge {
  private constructor(
    private readonly child: ChildProcess,
    private readonly lines: AsyncIterator<string>,
    private readonly dir: string,
    readonly git: string,
    readonly api: string,
    readonly token: string,
  ) {}

  static async start(dir: string): Promise<Forge> {
    mkdirSync(dir, { recursive: true });
    const root = fileURLToPath(new URL("../../..", import.meta.url));
    execFileSync("go", ["build", "-o", join(dir, "forge"), "./test/web/lab/forge"], { cwd: root, stdio: "inherit" });
    const child = spawn(join(dir, "forge"), [dir], { stdio: ["pipe", "pipe", "inherit"], cwd: root });
    const lines = (createInterface({ input: child.stdout! }) as Interface)[Symbol.asyncIterator]();
    const { git, api, token } = JSON.parse((await lines.next()).value as string) as { git: string; api: string; token: string };
    return new Forge(child, lines, dir, git, api, token);
  }

  get host(): string {
    return new URL(this.git).host;
  }

  /** take makes the bare repository owner/name the origin of a project. */
  take(project: Project): void {
    const at = join(this.dir, "owner/name.git");
    execFileSync("git", ["init", "-q", "--bare", "-b", "main", at]);
    execFileSync("git", ["-C", at, "config", "http.receivepack", "true"]);
    project.git("push", "-q", at, "main");
    project.git("remote", "add", "origin", `${this.git}/owner/name.git`);
  }

  show(name: string): string {
    return execFileSync("git", ["-C", join(this.dir, "owner/name.git"), "show", name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }

  /** end answers with what was opened, and fails if a request was wrong. */
  async end(): Promise<Pull[]> {
    const gone = new Promise<number | null>((done) => this.child.on("exit", done));
    this.child.stdin!.end();
    const pulls = JSON.parse((await this.lines.next()).value as string) as Pull[];
    const code = await gone;
    if (code !== 0) throw new Error(`the forge ended with ${code}`);
    return pulls;
  }
}
