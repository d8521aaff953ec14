import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "@playwright/test";
import { agentPath, type Thole } from "./thole.ts";

const quiet = `check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[tui]
animations = false
show_tooltips = false
`;

/** Terminal is the real Codex TUI on a thread, in a tmux of its own. */
export class Terminal {
  private readonly socket: string;

  constructor(
    private readonly thole: Thole,
    thread: string,
  ) {
    const home = join(thole.root, "terminal");
    mkdirSync(join(home, ".codex"), { recursive: true });
    writeFileSync(join(home, ".codex", "config.toml"), `${quiet}[projects."${home}"]\ntrust_level = "trusted"\n`);
    this.socket = join(home, "tmux");
    const line = ["env", "-i", `HOME=${home}`, "PATH=/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8", process.env.THOLE_BIN!, "--home", thole.home, "tui", "--codex", agentPath("codex")!, thread];
    this.tmux("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "40", "-c", home, line.map((it) => `'${it}'`).join(" "));
  }

  private tmux(...args: string[]): string {
    return execFileSync("tmux", ["-S", this.socket, ...args], { env: { PATH: "/usr/bin:/bin", TERM: "xterm-256color", LANG: "C.UTF-8", HOME: this.thole.root }, encoding: "utf8" });
  }

  text(): string {
    return this.tmux("capture-pane", "-p", "-S", "-500");
  }

  async shows(text: string | RegExp): Promise<void> {
    await expect.poll(() => this.text(), { timeout: 60_000 }).toMatch(typeof text === "string" ? new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")) : text);
  }

  async say(text: string): Promise<void> {
    this.tmux("send-keys", "-l", text);
    await this.shows(text);
    this.tmux("send-keys", "Enter");
  }

  key(name: string): void {
    this.tmux("send-keys", name);
  }

  end(): void {
    this.tmux("kill-server");
  }
}
