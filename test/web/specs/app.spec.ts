import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "../lab/test.ts";

// The page as an app: it can be installed, says when its server is away, keeps nothing that could be stale, and takes a new build.

test.use({ serviceWorkers: "allow" });

test("the manifest and its icons are there, and the worker keeps nothing but the page of a server that is away", async ({ desk, page, thole, expected }) => {
  expected.push(/ERR_CONNECTION_REFUSED|Failed to load resource|net::ERR/);
  await page.goto(`${thole.base}/new`);
  const manifest = (await (await page.request.get(`${thole.base}/manifest.webmanifest`)).json()) as { icons: { src: string; sizes: string; type: string }[] };
  for (const icon of manifest.icons) {
    const got = await page.request.get(thole.base + icon.src);
    expect(got.headers()["content-type"]).toBe(icon.type);
    if (icon.type !== "image/png") continue;
    const bytes = await got.body(); // the size stands in the header of the picture
    expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`).toBe(icon.sizes);
  }
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await page.reload(); // a page that was loading while its worker began is not the worker's
  await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
  await desk.ask("Kept nowhere sim: say never stored");
  await page.reload();
  await expect(desk.said("never stored")).toBeVisible();
  const kept = () => page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).map((it) => new URL(it.url).pathname)))).flat());
  expect(await kept()).toEqual(["/away.html"]);
  expect(await (await page.request.get(`${thole.base}/sw.js`)).headers()["cache-control"]).toBe("no-cache");

  await thole.stop();
  await page.goto(page.url());
  await expect(page.getByRole("heading", { name: "thole does not answer" })).toBeVisible();
  await desk.accessible();
  await thole.start();
  await page.getByRole("link", { name: /Try again/ }).click();
  await expect(desk.said("never stored")).toBeVisible();
});

/** site serves a build of the page and nothing of the API: everybody is logged out. */
async function site(dir: () => string) {
  const types: Record<string, string> = { js: "text/javascript", css: "text/css", html: "text/html", svg: "image/svg+xml", webmanifest: "application/manifest+json" };
  const server = createServer((request, response) => {
    const path = new URL(request.url!, "http://x").pathname;
    if (path.startsWith("/auth/")) return void response.writeHead(401, { "content-type": "application/problem+json" }).end('{"status":401,"title":"no"}');
    let file = join(dir(), path);
    let body: Buffer;
    try {
      body = readFileSync(file);
    } catch {
      file = join(dir(), "index.html");
      body = readFileSync(file);
    }
    response.writeHead(200, { "content-type": types[file.split(".").pop()!] ?? "application/octet-stream", "cache-control": path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache" }).end(body);
  });
  await new Promise<void>((up) => server.listen(0, "127.0.0.1", up));
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, end: () => server.close() };
}

test("a new build reaches a page that the worker of an old one serves", async ({ page, thole }) => {
  const builds = ["one", "two"].map((name) => {
    const dir = join(thole.root, name);
    mkdirSync(dir, { recursive: true });
    for (const from of ["dist", "public"]) cpSync(new URL(`../../../web/${from}`, import.meta.url), dir, { recursive: true });
    const index = readFileSync(join(dir, "index.html"), "utf8");
    const script = /<script[^>]* src="\/assets\/([^"]+)"/.exec(index)![1]!;
    writeFileSync(join(dir, "assets", `build-${name}.js`), `document.documentElement.dataset.build = "${name}"; navigator.serviceWorker.register("/sw.js");`);
    writeFileSync(join(dir, "index.html"), index.replace(`/assets/${script}`, `/assets/build-${name}.js`));
    return dir;
  });
  let now = builds[0]!;
  const server = await site(() => now);
  await page.goto(server.base);
  await expect(page.locator("html")).toHaveAttribute("data-build", "one");
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await page.reload(); // a page that was loading while its worker began is not the worker's
  await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
  now = builds[1]!;
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-build", "two");
  server.end();
});
