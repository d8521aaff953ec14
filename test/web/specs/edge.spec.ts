import { createServer, type IncomingMessage, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type BrowserContext, type Page, test as base } from "@playwright/test";
import { expect, test } from "../lab/test.ts";
import { Thole } from "../lab/thole.ts";

// A program on another port of this machine: an agent's dev server, say. The browser takes its pages for the same site
// and sends it thole's cookie. Every attack runs twice: it succeeds on a build without the guards, and fails on the real one.

/** Stranger serves a page and hears what the browser sends it. */
class Stranger {
  private constructor(private readonly server: Server) {}
  heard: IncomingMessage["headers"][] = [];
  /** Headers of its answers. */
  says: Record<string, string> = {};

  static async start(): Promise<Stranger> {
    const server = createServer();
    const it = new Stranger(server);
    server.on("request", (request, response) => {
      it.heard.push(request.headers);
      response.writeHead(200, { "content-type": "text/html", ...it.says }).end("<!doctype html><title>stranger</title>");
    });
    await new Promise<void>((up) => server.listen(0, "127.0.0.1", up));
    return it;
  }
  get base(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

interface Answer {
  status: number;
  body: string;
}

/** forge asks thole as no browser would: with a stolen cookie, and headers that say what thole likes to hear. It reads the first piece of a stream only. */
const forge = (thole: Thole, method: string, path: string, cookie: string, body?: unknown, more: Record<string, string> = {}): Promise<Answer> =>
  new Promise((done, failed) => {
    const headers = { cookie, origin: thole.base, "sec-fetch-site": "same-origin", "content-type": "application/json", ...more };
    const request = httpRequest(thole.base + path, { method, headers }, (response) => {
      let text = "";
      const over = () => {
        request.destroy();
        done({ status: response.statusCode!, body: text });
      };
      response.on("data", (piece: Buffer) => {
        text += piece.toString();
        if (response.headers["content-type"] === "text/event-stream") over();
      });
      response.on("end", over);
    });
    request.on("error", failed);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });

const message = (id: string, text: string) => ({ id, trigger: "submit-message", messages: [{ id: `m-${text}`, role: "user", parts: [{ type: "text", text: `sim: say ${text}` }] }] });

/** victim is a person's browser, logged in. */
async function logIn(page: Page, thole: Thole): Promise<void> {
  await page.goto(thole.loginLink());
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
}

/** ask is a request of the page's own script. */
const ask = (page: Page, path: string, method = "GET", body?: unknown): Promise<Answer> =>
  page.evaluate(
    async ([path, method, body]) => {
      const headers = { "thole-proof": localStorage.getItem("thole.proof") ?? "", "content-type": "application/json" };
      const response = await fetch(path!, { method, headers, body });
      return { status: response.status, body: await response.text() };
    },
    [path, method, body === undefined ? undefined : JSON.stringify(body)] as [string, string, string | undefined],
  );

const cookieOf = async (context: BrowserContext, thole: Thole) => (await context.cookies(thole.base)).find((it) => /thole_/.test(it.name))!;

for (const guarded of [false, true]) {
  base.describe(guarded ? "the real program" : "a build without the guards", () => {
    let thole: Thole;
    let stranger: Stranger;
    base.beforeAll(async () => {
      thole = new Thole([], guarded ? process.env.THOLE_BIN! : process.env.THOLE_UNGUARDED_BIN!);
      await thole.start();
    });
    base.afterAll(() => thole.end());
    base.beforeEach(async () => void (stranger = await Stranger.start()));
    base.afterEach(() => stranger.end());

    /** A private chat of the victim's. */
    const secret = "xylophone";
    const chat = async (page: Page): Promise<string> => {
      const made = await ask(page, "/sessions", "POST", { name: secret });
      expect(made.status).toBe(201);
      return (JSON.parse(made.body) as { id: string }).id;
    };
    const said = async (page: Page, id: string): Promise<string> => (await ask(page, `/sessions/${id}/messages`)).body;

    base(`a stolen cookie ${guarded ? "opens nothing" : "opens everything"}`, async ({ page }) => {
      await logIn(page, thole);
      const id = await chat(page);
      await page.goto(stranger.base);
      const cookie = stranger.heard[0]!.cookie ?? "";
      expect(cookie).toContain("thole_"); // the browser does hand it over: cookies know no port
      const threads = await forge(thole, "GET", "/sessions", cookie);
      const send = await forge(thole, "POST", "/api/chat", cookie, message(id, "stolen"));
      const events = await forge(thole, "GET", "/events", cookie);
      const token = await forge(thole, "POST", "/auth/tokens", cookie, { name: "stolen" });
      const ticket = await forge(thole, "POST", "/auth/tickets", cookie, { path: "/events" });
      expect([threads, send, events, token, ticket].map((it) => it.status)).toEqual(guarded ? [401, 401, 401, 401, 401] : [200, 200, 200, 201, 201]);
      expect(threads.body.includes(secret)).toBe(!guarded);
      expect(events.body.includes("ready")).toBe(!guarded);
      await page.goto(thole.base);
      await expect.poll(async () => (await said(page, id)).includes("stolen")).toBe(!guarded);
    });

    base(`a page on another port ${guarded ? "cannot act" : "acts"} in the victim's browser`, async ({ page }) => {
      await logIn(page, thole);
      const id = await chat(page);
      const socket = await thole.socket();
      await page.goto(stranger.base);
      const got = await page.evaluate(
        async ([base, socket, body]) => {
          await fetch(`${base}/api/chat`, { method: "POST", mode: "no-cors", credentials: "include", body }).catch(() => {});
          const read = await fetch(`${base}/sessions`, { credentials: "include" }).then(
            (it) => it.text(),
            () => "unreadable",
          );
          const stream = await new Promise((done) => {
            const source = new EventSource(`${base}/events`, { withCredentials: true });
            source.onopen = () => done("open");
            source.onerror = () => done("refused");
          });
          const opened = (url: string) =>
            new Promise((done) => {
              const line = new WebSocket(url);
              line.onopen = () => done("open");
              line.onerror = () => done("refused");
            });
          return { read, stream, socket: await opened(socket!), page: await opened(`${base!.replace("http", "ws")}/events`) };
        },
        [thole.base, socket.url, JSON.stringify(message(id, "forged"))],
      );
      socket.end();
      // No answer may be read from another origin on either build; what a page may do blindly is what the guard is for.
      expect(got).toEqual({ read: "unreadable", stream: "refused", socket: guarded ? "refused" : "open", page: "refused" });
      await page.goto(thole.base);
      await expect.poll(async () => (await said(page, id)).includes("forged")).toBe(!guarded);
    });

    base(`a planted cookie ${guarded ? "does not log the victim in as" : "makes the victim"} the attacker`, async ({ page, context, browser }) => {
      const attacker = await browser.newContext();
      const theirs = await attacker.newPage();
      await logIn(theirs, thole);
      const planted = await cookieOf(attacker, thole);
      const attackers = (JSON.parse((await ask(theirs, "/auth/session")).body) as { id: string }).id;
      await logIn(page, thole);
      stranger.says = { "set-cookie": `${planted.name}=${planted.value}; Path=/; HttpOnly` };
      await page.goto(stranger.base);
      expect((await cookieOf(context, thole)).value).toBe(planted.value); // planted it is
      await page.goto(`${thole.base}/auth/login.js`); // a page of thole's that does nothing by itself
      const now = await ask(page, "/auth/session");
      expect(now.status).toBe(guarded ? 401 : 200);
      expect(now.body.includes(attackers)).toBe(!guarded);
      await attacker.close();
    });
  });
}

test("a link from another page asks before it logs in, and changes no login that is there", async ({ thole, browser }) => {
  const stranger = await Stranger.start();
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(stranger.base);
  const go = (link: string) => page.evaluate((link) => void location.assign(link), link);
  await go(thole.loginLink());
  await expect(page.getByRole("heading", { name: "Log this browser in?" })).toBeVisible();
  expect(page.url()).not.toContain("code"); // nor is it in the history
  expect((await context.cookies(thole.base)).length).toBe(0);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  const before = (await cookieOf(context, thole)).value;
  await page.goto(stranger.base);
  await go(thole.loginLink());
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  expect((await cookieOf(context, thole)).value).toBe(before);
  await context.close();
  stranger.end();
});

test("a login link leads to no other place", async ({ thole, browser }) => {
  const stranger = await Stranger.start();
  const host = stranger.base.slice("http:".length); // "//127.0.0.1:…"
  for (const next of [`/%09${host.slice(1)}`, `/%0a${host.slice(1)}`, host, `/\\${host.slice(2)}`, `%5C%5C${host.slice(2)}`, `/.${host}`, stranger.base, "javascript:document.title='owned'", "data:text/html,owned", "http://", "%00"]) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${thole.loginLink()}&next=${next}`);
    await page.waitForURL((url) => url.pathname !== "/auth/login");
    await page.waitForLoadState();
    expect(new URL(page.url()).origin, next).toBe(thole.base);
    expect(await page.title(), next).not.toBe("owned");
    await context.close();
  }
  expect(stranger.heard).toEqual([]);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${thole.loginLink()}&next=/new`);
  await expect(page).toHaveURL(`${thole.base}/new`);
  await context.close();
  stranger.end();
});

test("a reload and a second tab stay logged in, and a used link says so", async ({ desk, page, context, thole }) => {
  await page.reload();
  await expect(desk.input).toBeVisible();
  const second = await context.newPage();
  await second.goto(thole.base);
  await expect(second.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  await second.close();
  const link = thole.loginLink();
  for (const works of [true, false]) {
    const other = await context.browser()!.newContext();
    const tab = await other.newPage();
    await tab.goto(link);
    await expect(works ? tab.getByRole("textbox", { name: "Message", exact: true }) : tab.getByRole("heading", { name: "This link does not work any more" })).toBeVisible();
    await other.close();
  }
});

test("a browser is logged out from another one, at once", async ({ desk, page, thole, browser }) => {
  const other = await browser.newContext({ locale: "en-US", userAgent: "Elsewhere/1 Firefox/999 (Android)" });
  const tab = await other.newPage();
  await tab.goto(thole.loginLink());
  await expect(tab.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("link", { name: "Browsers" }).click();
  const row = page.getByRole("region", { name: "Logged-in browsers" }).getByRole("listitem").filter({ hasText: "Firefox 999, Android" });
  await expect(page.getByText("This browser", { exact: true })).toBeVisible();
  await row.getByRole("button", { name: "Log out there" }).click();
  await expect(row).toHaveCount(0);
  await expect(tab.getByRole("heading", { name: "Log in to thole" })).toBeVisible(); // its open stream said so
  await page.getByRole("banner").getByRole("link", { name: "thole" }).click();
  await expect(desk.input).toBeVisible();
  await other.close();
});

test("an EventSource opens with a ticket, once", async ({ desk, page, expected }) => {
  expected.push(/401/);
  await expect(desk.input).toBeVisible();
  const { ticket } = JSON.parse((await ask(page, "/auth/tickets", "POST", { path: "/events" })).body) as { ticket: string };
  const open = (url: string) =>
    page.evaluate(
      (url) =>
        new Promise((done) => {
          const source = new EventSource(url);
          source.onopen = () => (source.close(), done("open"));
          source.onerror = () => (source.close(), done("refused"));
        }),
      url,
    );
  expect(await open(`/events?ticket=${ticket}`)).toBe("open");
  expect(await open(`/events?ticket=${ticket}`)).toBe("refused");
  expect(await open("/events")).toBe("refused"); // the cookie alone
});
