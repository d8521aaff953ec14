import { type Page, test as base } from "@playwright/test";
import { expect, test } from "../lab/test.ts";
import { Thole } from "../lab/thole.ts";

// A web server of an agent, in its box, opened by a person. Its page is the agent's: it attacks from inside the person's
// browser. The attacks succeed on a build that shows it below thole's own origin, and fail on the real one.

const port = 8123;

/** An agent's server: a page, and what it heard. It plants what cookies it can. */
const server = `
import http.server, json
heard = []
class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        heard.append(dict(self.headers))
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if self.path.endswith("heard") else "text/html")
        self.send_header("Set-Cookie", "agent=1; Domain=localhost; Path=/")
        self.send_header("Set-Cookie", "thole_planted=1; Path=/")
        self.end_headers()
        self.wfile.write((json.dumps(heard) if self.path.endswith("heard") else "<!doctype html><title>of the agent</title><h1>of the agent</h1>").encode())
    def log_message(self, *all): pass
http.server.ThreadingHTTPServer(("127.0.0.1", ${port}), Agent).serve_forever()
`;

const ask = (page: Page, path: string, method = "GET", body?: unknown): Promise<{ status: number; body: string }> =>
  page.evaluate(
    async ([path, method, body]) => {
      const headers = { "thole-proof": localStorage.getItem("thole.proof") ?? "", "content-type": "application/json" };
      const response = await fetch(path!, { method, headers, body });
      return { status: response.status, body: await response.text() };
    },
    [path, method, body === undefined ? undefined : JSON.stringify(body)] as [string, string, string | undefined],
  );

const message = (id: string, text: string) => ({ id, trigger: "submit-message", messages: [{ id: `m-${text}`, role: "user", parts: [{ type: "text", text }] }] });

/** serve makes a chat whose agent runs the server, and opens its port. */
async function serve(page: Page): Promise<{ chat: string; run: string; url: string }> {
  const chat = (JSON.parse((await ask(page, "/sessions", "POST", { name: "xylophone", execution_profile: "full" })).body) as { id: string }).id;
  const started = await ask(page, `/sessions/${chat}/runs`, "POST", { text: `sim: run echo ${Buffer.from(server).toString("base64")} | base64 -d >server.py; exec python3 server.py` });
  expect(started.status).toBe(201);
  let url = "";
  await expect
    .poll(
      async () => {
        const opened = await ask(page, `/sessions/${chat}/ports`, "POST", { port });
        if (opened.status === 201) url = (JSON.parse(opened.body) as { url: string }).url;
        return opened.status;
      },
      { timeout: 30_000 },
    )
    .toBe(201);
  return { chat, run: (JSON.parse(started.body) as { id: string }).id, url };
}

for (const guarded of [false, true]) {
  base.describe(guarded ? "the real program" : "a build without the guards", () => {
    let thole: Thole;
    base.beforeAll(async () => {
      thole = new Thole([], guarded ? process.env.THOLE_BIN! : process.env.THOLE_UNGUARDED_BIN!);
      await thole.start();
    });
    base.afterAll(() => thole.end());

    base(`a page of the agent's ${guarded ? "gets nothing of thole's" : "gets everything"}`, async ({ page, context }) => {
      await page.goto(thole.loginLink());
      await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
      const { url } = await serve(page);
      const make = async () => (JSON.parse((await ask(page, "/sessions", "POST", { name: "private" })).body) as { id: string }).id;
      const [chat, other] = [await make(), await make()];
      const theirs = await context.newPage();
      await theirs.goto(url);
      await expect(theirs.getByRole("heading", { name: "of the agent" })).toBeVisible();
      expect(theirs.url()).not.toContain("ticket");
      expect(new URL(theirs.url()).origin === thole.base).toBe(!guarded);
      const heard = await theirs.evaluate(async () => await (await fetch("heard")).text());
      expect(heard.includes("thole_")).toBe(!guarded);
      const got = await theirs.evaluate(
        async ([base, forged, form]) => {
          const send = (body: string, headers?: Record<string, string>) => fetch(`${base}/api/chat`, { method: "POST", mode: headers ? "cors" : "no-cors", credentials: "include", headers, body }).catch(() => {});
          await send(forged!);
          await send(forged!, { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof") ?? "" });
          const read = await fetch(`${base}/sessions`, { credentials: "include" }).then(
            (it) => it.text(),
            () => "unreadable",
          );
          const line = await new Promise((done) => {
            const socket = new EventSource(`${base}/events`, { withCredentials: true });
            socket.onopen = () => done("open");
            socket.onerror = () => done("refused");
          });
          const frame = document.createElement("iframe");
          frame.src = base!;
          await new Promise((loaded) => {
            frame.onload = loaded;
            document.body.append(frame);
          });
          const posted = document.createElement("iframe");
          posted.name = "posted";
          document.body.append(posted);
          const sender = document.createElement("form");
          sender.method = "post";
          sender.enctype = "text/plain";
          sender.action = `${base}/api/chat`;
          sender.target = "posted";
          const field = document.createElement("input");
          field.name = `${form!.slice(0, -1)},"pad":"`;
          field.value = '"}';
          sender.append(field);
          document.body.append(sender);
          await new Promise((loaded) => {
            posted.onload = loaded;
            sender.submit();
          });
          for (const domain of ["localhost", "127.0.0.1", ".localhost"]) document.cookie = `thole_planted=1; path=/; domain=${domain}`;
          let inside = "";
          try {
            inside = frame.contentDocument!.title;
          } catch {
            inside = "unreadable";
          }
          return { read: read.includes("xylophone"), line, proof: localStorage.getItem("thole.proof") !== null, inside: inside !== "" && inside !== "unreadable", opener: window.opener === null };
        },
        [thole.base, JSON.stringify(message(chat, "sim: say forged")), JSON.stringify(message(other, "sim: say formed"))],
      );
      expect(got).toEqual({ read: !guarded, line: guarded ? "refused" : "open", proof: !guarded, inside: !guarded, opener: true });
      // What the agent's script cannot read a person could still be led to click on: the page shows in no frame.
      const framed = theirs.frames().filter((it) => it.url().startsWith(thole.base) && it.parentFrame() !== null && !it.url().includes("/api/") && !it.url().includes("/.preview/"));
      const shown = await Promise.all(framed.map((it) => it.title().catch(() => "")));
      expect(shown.some((it) => it !== "")).toBe(!guarded);
      for (const at of [thole.base, thole.base.replace("127.0.0.1", "localhost")]) expect((await context.cookies(at)).map((it) => it.name).includes("thole_planted")).toBe(!guarded && at === thole.base);
      const said = async (id: string, word: string) => (await ask(page, `/sessions/${id}/messages`)).body.includes(word);
      await expect.poll(() => said(chat, "forged")).toBe(!guarded);
      await expect.poll(() => said(other, "formed")).toBe(!guarded);
      await theirs.close();
    });
  });
}

test("a person opens a server of the agent from the page, and a stranger does not", async ({ desk, page, browser, expected }) => {
  expected.push(/409/, /request to http:\/\/[a-z2-7]{26}\.localhost/);
  const { chat, run } = await serve(page);
  await page.goto(`${desk.thole.base}/c/${chat}`);
  await desk.tab("Agent");
  const region = page.getByRole("region", { name: "Web servers of the agent" });
  await expect(region.getByRole("listitem")).toHaveCount(1); // the one of serve
  await region.getByRole("textbox").fill(String(port));
  await region.getByRole("button", { name: "Open port" }).click();
  const link = region.getByRole("link", { name: "Show in a new tab" });
  const address = (await link.getAttribute("href"))!;
  const [tab] = await Promise.all([page.waitForEvent("popup"), link.click()]);
  await expect(tab.getByRole("heading", { name: "of the agent" })).toBeVisible();
  expect(await tab.evaluate(() => window.opener === null && document.referrer === "")).toBe(true);
  const stranger = await browser.newContext();
  const theirs = await stranger.newPage();
  for (const at of [address, new URL(address).origin]) {
    expect((await theirs.goto(at))!.status()).toBe(403);
    await expect(theirs.getByText(`thole thread port ${chat} ${port}`)).toBeVisible();
  }
  await stranger.close();
  await desk.accessible();
  await desk.shot("ports");
  await region.getByRole("button", { name: "Close", exact: true }).click();
  await expect(region.getByRole("listitem")).toHaveCount(0);
  expect((await tab.reload())!.status()).toBe(403);
  await tab.close();
  await ask(page, `/runs/${run}/cancel`, "POST");
});

test("what a run reached and was refused is shown, and a person narrows it", async ({ desk, page }) => {
  const chat = (JSON.parse((await ask(page, "/sessions", "POST", { name: "Network", execution_profile: "full" })).body) as { id: string }).id;
  await page.goto(`${desk.thole.base}/c/${chat}`);
  await desk.ask("sim: say hello");
  await desk.tab("Agent");
  const region = page.getByRole("region", { name: "Network" });
  await expect(region.getByText("This run has reached nothing so far.")).toBeVisible();
  await region.getByRole("combobox", { name: "What the agent may reach" }).selectOption({ label: "models only" });
  await expect.poll(async () => (JSON.parse((await ask(page, `/sessions/${chat}/network`)).body) as { policy: string }).policy).toBe("gateway");
  await desk.ask("sim: run curl -s http://a-rather-long-name-of-a-host.elsewhere.example.com/; curl -s https://registry.example.com/ || true");
  const refused = region.getByRole("listitem").filter({ hasText: "a-rather-long-name-of-a-host.elsewhere.example.com:80" });
  await expect(refused.getByText("refused", { exact: true })).toBeVisible();
  await expect(refused.getByText('the network of this thread is "gateway"')).toBeVisible();
  await expect(region.getByRole("combobox")).toHaveValue("gateway");
  await desk.accessible();
  await desk.shot("network");
  await page.emulateMedia({ colorScheme: "dark" });
  await desk.accessible();
  await desk.shot("network-dark");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await page.getByRole("button", { name: "Show details" }).click();
  await expect(refused).toBeVisible();
  await desk.fits();
  await desk.shot("network-phone");
  await region.getByRole("combobox").selectOption({ label: "everything public" });
  await expect.poll(async () => (JSON.parse((await ask(page, `/sessions/${chat}`)).body) as { network?: object }).network).toBe(undefined);
});
