import { test as base, expect, type Locator, type Page } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import AxeBuilder from "@axe-core/playwright";
import { disorder } from "./disorder.ts";
import { Thole } from "./thole.ts";

export { expect } from "@playwright/test";

const shots = fileURLToPath(new URL("../../../docs/screenshots/", import.meta.url));

/** Desk is the page as a person uses it. */
export class Desk {
  constructor(
    readonly page: Page,
    readonly thole: Thole,
  ) {}

  get input(): Locator {
    return this.page.getByRole("textbox", { name: "Message", exact: true });
  }
  get chat(): Locator {
    return this.page.getByRole("main");
  }
  /** said is a text of the agent's, not of the user's. */
  said(text: string | RegExp): Locator {
    return this.chat.locator(".prose", { hasText: text });
  }
  get stopButton(): Locator {
    return this.page.getByRole("button", { name: "Stop", exact: true });
  }
  get sendButton(): Locator {
    return this.page.getByRole("button", { name: "Send", exact: true });
  }

  /** fresh: the page is as the login left it, which is a new chat. */
  private fresh = false;

  async logIn(): Promise<void> {
    await this.page.goto(this.thole.loginLink());
    await expect(this.input).toBeVisible();
    this.fresh = true;
  }

  /** newChat opens one. What the login opened is not loaded again, unless the test changed what pages load. */
  async newChat({ load = false } = {}): Promise<void> {
    const there = this.fresh && ["/", "/new"].includes(new URL(this.page.url()).pathname);
    if (load || !there) await this.page.goto(`${this.thole.base}/new`);
    this.fresh = false;
    await expect(this.input).toBeEnabled();
  }

  async send(text: string): Promise<void> {
    await this.input.fill(text);
    await this.input.press("Enter");
  }

  /** ask sends and waits until the run is over. */
  async ask(text: string): Promise<void> {
    await this.send(text);
    await expect(this.stopButton.or(this.chat.locator("time")).first()).toBeVisible();
    await expect(this.page).toHaveURL(/\/c\//);
    await this.idle();
  }

  async idle(): Promise<void> {
    await expect(this.sendButton).toBeVisible({ timeout: 60_000 });
  }

  /** source is the button that shows what a new chat works on. */
  get source(): Locator {
    return this.page.getByRole("button", { name: /^Project:/ });
  }

  /** work chooses a repository by its address, or no project. */
  async work(on?: string): Promise<void> {
    await this.source.click();
    const dialog = this.page.getByRole("dialog", { name: "What should the agent work on?" });
    await dialog.getByText(on ? "Repository address" : "No project").click();
    if (on) await dialog.getByLabel("Repository", { exact: true }).fill(on);
    await dialog.getByRole("button", { name: "Use this" }).click();
  }

  async tab(name: "Agent" | "Changes" | "Todo" | "Ask" | "Jobs"): Promise<void> {
    await this.page.getByRole("tab", { name: new RegExp(`^${name}`) }).click();
  }

  get sessionID(): string {
    return new URL(this.page.url()).pathname.split("/")[2]!;
  }

  /** shot keeps a picture for the documentation when THOLE_SHOTS is set; a title stands in place of the script in the prompt. */
  async shot(name: string, title?: string): Promise<void> {
    if (!process.env.THOLE_SHOTS) return;
    if (title) {
      const edit = ([id, name]: string[]) => fetch(`/sessions/${id}`, { method: "PATCH", headers: { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof")! }, body: JSON.stringify({ name }) }).then((it) => it.status);
      expect(await this.page.evaluate(edit, [this.sessionID, title])).toBe(200);
      await expect(this.page.getByText(title).first()).toBeAttached();
    }
    mkdirSync(shots, { recursive: true });
    await this.page.mouse.move(0, 0); // nothing is pointed at
    await this.page.screenshot({ path: `${shots}${name}.png` });
  }

  /** accessible judges the page as it settles: colours change by and by, and those on the way are nobody's choice. */
  async accessible(): Promise<void> {
    const faults = async () => {
      const { violations } = await new AxeBuilder({ page: this.page }).analyze();
      return violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html).join(" | ")}`);
    };
    await expect.poll(faults, { timeout: 60_000 }).toEqual([]); // one look takes ten seconds on a busy machine
  }

  /** fits judges the page as it settles: what slides in or out is wider on the way. */
  async fits(): Promise<void> {
    const wide = () => this.page.evaluate(() => {
      const width = document.documentElement.clientWidth;
      return [...document.querySelectorAll("body *")]
        .filter((it) => {
          if (it.getBoundingClientRect().right <= width + 1) return false;
          for (let up = it.parentElement; up && up !== document.body; up = up.parentElement) if (getComputedStyle(up).overflowX !== "visible" && up.getBoundingClientRect().right <= width + 1) return false;
          return true;
        })
        .map((it) => it.outerHTML.slice(0, 120));
    });
    await expect.poll(wide).toEqual([]);
    await expect.poll(() => this.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)).toBe(true);
  }
}

interface Fixtures {
  desk: Desk;
  /** Words of console messages that a test causes on purpose. */
  expected: RegExp[];
}

interface WorkerFixtures {
  thole: Thole;
  /** How many times slower than this machine the browser is, so that orders which a fast one never shows are met. */
  slowed: number;
  /** Whether pages hear what they hear at their start in other orders. */
  disordered: boolean;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  slowed: [1, { option: true, scope: "worker" }],
  disordered: [false, { option: true, scope: "worker" }],
  // Every page of every context, those that a test makes itself too.
  browser: [
    async ({ browser, slowed, disordered }, use) => {
      const make = browser.newContext.bind(browser);
      browser.newContext = async (options) => {
        const context = await make(options);
        if (disordered) await disorder(context);
        if (slowed > 1)
          context.on("page", (page) => {
            const slow = async () => (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: slowed });
            slow().catch(() => {}); // it was closed at once
          });
        return context;
      };
      await use(browser);
    },
    { scope: "worker" },
  ],
  thole: [
    async ({}, use) => {
      const thole = new Thole();
      await thole.start();
      await use(thole);
      await thole.end();
    },
    { scope: "worker", timeout: 60_000 },
  ],
  expected: [async ({}, use) => use([]), {}],
  desk: async ({ page, thole, expected }, use) => {
    const noise: string[] = [];
    page.on("console", (message) => message.type() === "error" && noise.push(`${message.text()} ${message.location().url}`));
    page.on("response", (response) => response.status() >= 400 && noise.push(`${response.status()} ${response.request().method()} ${response.url()}`));
    page.on("pageerror", (error) => noise.push(error.message));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (!["data:", "blob:"].includes(url.protocol) && url.origin !== thole.base) noise.push(`request to ${url.origin}`);
    });
    const desk = new Desk(page, thole);
    await desk.logIn();
    await use(desk);
    expect(noise.filter((line) => !expected.some((it) => it.test(line)))).toEqual([]);
  },
});
