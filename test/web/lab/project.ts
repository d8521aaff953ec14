import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Thole } from "./thole.ts";

let made = 0;

/** Project is a git repository of the user's. */
export class Project {
  readonly dir: string;

  constructor(thole: Thole) {
    this.dir = join(thole.root, `project-${++made}`);
    mkdirSync(this.dir);
    this.git("init", "-q", "-b", "main");
    this.git("config", "user.name", "Ada");
    this.git("config", "user.email", "ada@example.org");
    this.write("list.txt", Array.from({ length: 30 }, (_, n) => `line ${n + 1}\n`).join(""));
    this.write("old.txt", "to be removed\n");
    this.commit("begin");
  }

  git(...args: string[]): string {
    return execFileSync("git", ["-C", this.dir, ...args], { encoding: "utf8", env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" } });
  }

  write(name: string, text: string | Buffer): void {
    writeFileSync(join(this.dir, name), text);
  }

  commit(message: string): void {
    this.git("add", "-A");
    this.git("commit", "-qm", message);
  }
}
