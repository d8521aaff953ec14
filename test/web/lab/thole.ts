import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";

const cache = process.env.THOLE_LAB ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "thole-lab");

/** The real agent CLIs, where `make setup` puts them. */
const agents = {
  codex: "codex-0.166.0/node_modules/@openai/codex/vendor/*/bin/codex",
  claude: "claude-2.1.325/node_modules/@anthropic-ai/claude-code-linux-*/claude",
  opencode: "opencode-1.18.33/node_modules/opencode-linux-*/bin/opencode",
} as const;
export type AgentName = keyof typeof agents;

/** find follows a path whose segments may hold one star. */
function find(dir: string, path: string): string | undefined {
  return path.split("/").reduce<string | undefined>((at, segment) => {
    if (!at) return undefined;
    if (!segment.includes("*")) return existsSync(join(at, segment)) ? join(at, segment) : undefined;
    const [head, tail] = segment.split("*") as [string, string];
    const name = existsSync(at) ? readdirSync(at).find((it) => it.startsWith(head) && it.endsWith(tail)) : undefined;
    return name && join(at, name);
  }, dir);
}

export const agentPath = (name: AgentName): string | undefined => find(cache, agents[name]);

const freePort = (): Promise<number> =>
  new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => done(port));
    });
  });

/** Thole is a `thole up --demo` of its own: own home, emptied environment, loopback. */
export class Thole {
  private child?: ChildProcess;
  private port = 0;
  readonly root = mkdtempSync(join(tmpdir(), "thole-web-"));
  readonly home = join(this.root, "home");

  constructor(
    private readonly withAgents: AgentName[] = [],
    private readonly bin = process.env.THOLE_BIN!,
    /** demo: agents talk to the scripted model, and have nothing of the user's own configuration. */
    private readonly demo = true,
  ) {}

  private get env(): Record<string, string> {
    const path = [...this.withAgents.map((name) => dirname(agentPath(name)!)), "/usr/bin", "/bin"].join(":");
    return { HOME: this.root, PATH: path, THOLE_HOME: this.home, LANG: "C.UTF-8" };
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    this.port ||= await freePort();
    const child = spawn(this.bin, ["up", ...(this.demo ? ["--demo"] : []), "--no-browser", "--listen", `127.0.0.1:${this.port}`], { env: this.env, cwd: this.root, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    let said = "";
    await new Promise<void>((up, failed) => {
      const hear = (data: Buffer) => {
        said += data;
        if (said.includes("thole is up")) up();
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.on("exit", (code) => failed(new Error(`thole up ended with ${code}: ${said}`)));
    });
  }

  /** stop asks for a drain, or kills without a word. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((done) => child.on("exit", done));
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(late);
  }

  async end(): Promise<void> {
    await this.stop();
    this.sweep();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }); // what was ended may still write
  }

  // Executors outlive the server, so that the next one finds them; after a test there is no next one.
  private sweep(): void {
    for (const pid of readdirSync("/proc").filter((it) => /^\d+$/.test(it))) {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${this.root}/`)) process.kill(Number(pid), "SIGKILL");
      } catch {
        // It ended by itself.
      }
    }
  }

  cli(...args: string[]): string {
    return execFileSync(this.bin, ["--home", this.home, ...args], { env: this.env, encoding: "utf8" });
  }

  /** feed runs a command that reads its input. */
  feed(input: string, ...args: string[]): void {
    execFileSync(this.bin, ["--home", this.home, ...args], { env: this.env, input });
  }

  /** configure writes the configuration, before the start. */
  configure(toml: string): void {
    mkdirSync(this.home, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.home, "config.toml"), toml);
  }

  /** write makes a file of the user's, in their home. */
  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.root, name)), { recursive: true });
    writeFileSync(join(this.root, name), text);
  }

  /** background runs a command and answers when it ended. */
  background(...args: string[]): Promise<string> {
    return new Promise((done, failed) => execFile(this.bin, ["--home", this.home, ...args], { env: this.env }, (error, out) => (error ? failed(error) : done(out))));
  }

  /** socket serves the contract's WebSocket without a token, and answers with its address. */
  async socket(): Promise<{ url: string; end: () => void }> {
    const child = spawn(this.bin, ["--home", this.home, "app-server", "--listen", "ws://127.0.0.1:0", "--ws-auth", "none"], { env: this.env, stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise<string>((said) => child.stdout.once("data", (data: Buffer) => said(data.toString().trim())));
    return { url, end: () => child.kill("SIGKILL") };
  }

  /** loginLink is a fresh one-time link. */
  loginLink(): string {
    return (JSON.parse(this.cli("login", "--json")) as { url: string }).url;
  }
}
