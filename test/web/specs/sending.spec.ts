import { basename } from "node:path";
import { Project } from "../lab/project.ts";
import type { Page, Route } from "@playwright/test";
import { Desk, expect, test } from "../lab/test.ts";

// A message that cannot be sent comes back with the reason; one that may have arrived is never sent twice.

test.beforeEach(async ({ desk, expected }) => {
  expected.push(/./); // every test here makes requests fail
  await desk.newChat();
});

const unknown = "it is not known whether this message arrived";
const picture = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64") };

const attach = (desk: Desk) => desk.page.locator("input[type=file]").setInputFiles(picture);

/** runs are the inputs of all runs of the chat, as the server has them. */
const runs = (desk: Desk): Promise<string[]> =>
  desk.page.evaluate(async (id) => {
    const page = (await (await fetch(`/sessions/${id}/runs?limit=100`, { headers: { "thole-proof": localStorage.getItem("thole.proof")! } })).json()) as { items: { input: { text?: string }[] }[] };
    return page.items.map((run) => run.input.map((part) => part.text ?? "").join(""));
  }, desk.sessionID);

const ranOnce = async (desk: Desk, text: string) => {
  await expect.poll(async () => (await runs(desk)).filter((it) => it === text).length).toBe(1);
  await desk.idle();
  await expect(desk.chat.getByText(text, { exact: true })).toHaveCount(1);
};

const nothingRuns = async (desk: Desk) => {
  await expect(desk.stopButton).toHaveCount(0);
  await expect(desk.page.getByText(/run goes on|Working…/)).toHaveCount(0);
};

/** most counts, from now on, the most elements of a kind that the page ever showed at once. */
const most = async (page: Page, selector: string): Promise<() => Promise<number>> => {
  const seen = await page.evaluateHandle((selector) => {
    const seen = { most: 0 };
    new MutationObserver(() => (seen.most = Math.max(seen.most, document.querySelectorAll(selector).length))).observe(document, { childList: true, subtree: true, attributes: true });
    return seen;
  }, selector);
  return () => seen.evaluate((it) => it.most);
};

/** lostAnswer lets a request through and loses its answer. */
const lostAnswer = async (route: Route) => {
  await route.fetch();
  await route.abort("connectionreset");
};

/** held keeps the requests to a path until they are let go. */
async function held(page: Page, path: string): Promise<{ arrived: Promise<void>; release: (how: (route: Route) => Promise<void>) => Promise<void> }> {
  let first!: () => void;
  const arrived = new Promise<void>((done) => (first = done));
  const waiting: Route[] = [];
  await page.route(path, (route) => {
    waiting.push(route);
    first();
  });
  return {
    arrived,
    release: async (how) => {
      await Promise.all(waiting.map(how));
      await page.unroute(path);
    },
  };
}

for (const where of ["a new chat", "an existing chat"])
  test(`a server that is down gives the message back: ${where}`, async ({ desk, thole }) => {
    if (where === "an existing chat") await desk.ask("Begin sim: say ready");
    const text = "Precious words sim: say got them";
    const project = new Project(thole);
    if (where === "a new chat") await desk.work(project.dir);
    await thole.stop("SIGKILL");
    await attach(desk);
    const pictures = await most(desk.page, "img[alt='dot.png']");
    await desk.send(text);
    await expect(desk.page.getByText(unknown)).toBeVisible();
    await expect(desk.input).toHaveValue(text);
    expect(await pictures()).toBe(1); // it is never in two places
    await expect(desk.page.getByAltText("dot.png")).toBeVisible();
    await expect(desk.chat.getByText(text, { exact: true }).and(desk.chat.locator("div"))).toHaveCount(0);
    if (where === "a new chat") await expect(desk.source).toContainText(basename(project.dir));
    await nothingRuns(desk);
    await desk.accessible();

    await thole.start();
    await expect(desk.page.getByText("This message did not reach thole")).toBeVisible({ timeout: 30_000 });
    await expect(desk.input).toHaveValue(text);
    await desk.input.press("Enter");
    await expect(desk.page).toHaveURL(/\/c\//);
    await expect(desk.said("got them").last()).toBeVisible();
    await ranOnce(desk, text);
    await expect(desk.input).toHaveValue("");
    await expect(desk.page.getByText("did not reach")).toHaveCount(0);
  });

const answers = [
  [413, "text/plain", "read chat: too large", "too large"],
  [422, "application/problem+json", JSON.stringify({ title: "Unprocessable", detail: "validation failed", code: "invalid", errors: [{ location: "body.dir", message: "no such folder" }] }), "no such folder"],
  [409, "text/plain", "the chat is held", "the chat is held"],
  [429, "text/plain", "too many at once", "too many at once"],
  [500, "text/plain", "the server could not do this", "the server could not do this"],
  [502, "text/html", "<html>bad gateway</html>", "502"],
  [503, "text/plain", "draining", "draining"],
] as const;

for (const where of ["a new chat", "an existing chat"])
  test(`a refusal gives the message back with its reason: ${where}`, async ({ desk, page }) => {
    test.setTimeout(180_000);
    if (where === "an existing chat") await desk.ask("Begin sim: say ready");
    const before = where === "an existing chat" ? 1 : 0;
    const path = where === "an existing chat" ? "**/api/chat" : "**/sessions";
    await desk.input.fill("Say it sim: say it is said");
    for (const [status, contentType, body, reason] of answers) {
      await page.route(path, (route) => (route.request().method() === "POST" ? route.fulfill({ status, contentType, body }) : route.continue()));
      await desk.input.press("Enter");
      await expect(desk.chat.getByText(reason).first(), String(status)).toBeVisible();
      await expect(desk.input).toHaveValue("Say it sim: say it is said");
      await expect(desk.chat.getByRole("region", { name: "Chat", exact: true }).getByText("Say it sim:")).toHaveCount(0);
      await nothingRuns(desk);
      await page.unroute(path);
    }
    await desk.input.press("Enter");
    await expect(desk.said("it is said").last()).toBeVisible();
    await ranOnce(desk, "Say it sim: say it is said");
    expect(await runs(desk)).toHaveLength(before + 1);
  });

test("a message whose answer was lost is found, not sent twice", async ({ desk, page }) => {
  await desk.ask("Begin sim: say ready");
  await page.route("**/api/chat", lostAnswer);
  await desk.send("Once sim: say only once");
  await expect(desk.said("only once").last()).toBeVisible();
  await expect(desk.input).toHaveValue("");
  await page.unroute("**/api/chat");
  await ranOnce(desk, "Once sim: say only once");
});

test("a message of which nothing is known can be sent again, and runs once", async ({ desk, page }) => {
  // Without a worker even the stream of events goes through the page, where it can be cut off.
  await page.addInitScript(() => void delete (window as { SharedWorker?: unknown }).SharedWorker);
  await desk.newChat({ load: true });
  await desk.ask("Begin sim: say ready");
  const away = (route: Route) => route.abort("connectionrefused");
  await page.route("**/events*", away);
  await page.reload();
  await expect(desk.said("ready").last()).toBeVisible();
  await page.route("**/snapshot", away);
  await page.route("**/messages*", away);
  await page.route("**/api/chat", lostAnswer);
  await desk.send("Once sim: say only once");
  await expect(page.getByText(unknown)).toBeVisible();
  await expect(desk.input).toHaveValue("Once sim: say only once");
  await page.unroute("**/api/chat");
  await page.unroute("**/messages*");
  await page.unroute("**/snapshot");
  await desk.input.press("Enter");
  await expect(desk.said("only once").last()).toBeVisible();
  await ranOnce(desk, "Once sim: say only once");
  await expect(desk.input).toHaveValue("");
});

test("a message for the queue and one for the running answer come back", async ({ desk, page }) => {
  await desk.send("Busy sim: wait 5m ;; say first answer");
  await expect(desk.stopButton).toBeVisible();
  const queue = page.getByRole("region", { name: "Queued messages" });
  await page.route("**/queue", (route) => route.fulfill({ status: 503, contentType: "text/plain", body: "draining" }));
  await desk.send("queued one");
  await expect(desk.chat.getByText("draining")).toBeVisible();
  await expect(desk.input).toHaveValue("queued one");
  await page.unroute("**/queue");

  await page.route("**/queue", lostAnswer);
  await desk.input.press("Enter");
  await expect(queue.getByText("queued one")).toHaveCount(1);
  await expect(desk.input).toHaveValue("");
  await expect(desk.chat.getByText("draining")).toHaveCount(0);
  await page.unroute("**/queue");

  await page.route("**/steer", (route) => route.fulfill({ status: 409, contentType: "text/plain", body: "the run is over" }));
  await desk.input.fill("turn left");
  await page.getByRole("button", { name: "Steer" }).click();
  await expect(desk.chat.getByText("the run is over")).toBeVisible();
  await expect(desk.input).toHaveValue("turn left");
  await page.unroute("**/steer");
  await page.getByRole("button", { name: "Steer" }).click();
  await expect(desk.chat.getByText("Added while it was running")).toBeVisible();
  await expect(desk.input).toHaveValue("");
  await desk.idle();
  await expect(queue).toHaveCount(0);
});

test("a second message written while the first fails keeps both", async ({ desk, page }) => {
  await desk.ask("Begin sim: say ready");
  const chat = await held(page, "**/api/chat");
  await desk.send("First sim: say one");
  await chat.arrived;
  await expect(desk.chat.getByText("Sending…")).toBeVisible();
  await desk.input.fill("Second sim: say two");
  await chat.release((route) => route.fulfill({ status: 429, contentType: "text/plain", body: "too many at once" }));
  const aside = page.getByRole("region", { name: "Message that was not sent" });
  await expect(aside).toContainText("First sim: say one");
  await expect(aside).toContainText("too many at once");
  await expect(desk.input).toHaveValue("Second sim: say two");
  await desk.accessible();
  await aside.getByRole("button", { name: "Put into the field" }).click();
  await expect(desk.input).toHaveValue("First sim: say one");
  await expect(aside).toContainText("Second sim: say two");
  await desk.input.press("Enter");
  await expect(desk.said("one").last()).toBeVisible();
  await desk.idle();
  await aside.getByRole("button", { name: "Send again" }).click();
  await expect(desk.said("two").last()).toBeVisible();
  await desk.idle();
  expect((await runs(desk)).slice(-2)).toEqual(["First sim: say one", "Second sim: say two"]);
  await expect(aside).toHaveCount(0);
});

for (const fate of ["arrived", "did not arrive"])
  test(`a reload while a message is on its way keeps it: it ${fate}`, async ({ desk, page }) => {
    await desk.ask("Begin sim: say ready");
    const chat = await held(page, "**/api/chat");
    const text = "On its way sim: say made it";
    await desk.send(text);
    await chat.arrived;
    if (fate === "arrived") await chat.release(async (route) => void (await route.fetch()));
    await page.reload();
    await page.unroute("**/api/chat");
    if (fate === "did not arrive") {
      await expect(page.getByText("This message did not reach thole")).toBeVisible();
      await expect(desk.input).toHaveValue(text);
      await desk.input.press("Enter");
    }
    await expect(desk.said("made it").last()).toBeVisible();
    await ranOnce(desk, text);
    await expect(desk.input).toHaveValue("");
  });

test("what is being written outlives a reload, in each tab its own", async ({ desk, page, context, thole }) => {
  await desk.work("/nowhere/project");
  await desk.input.fill("not sent yet");
  await attach(desk);
  await page.reload();
  await expect(desk.input).toHaveValue("not sent yet");
  await expect(page.getByAltText("dot.png")).toBeVisible();
  await expect(desk.source).toContainText("project");
  const other = new Desk(await context.newPage(), thole);
  await other.page.goto(`${thole.base}/new`);
  await expect(other.input).toHaveValue("");
  await other.input.fill("another tab");
  await page.reload();
  await expect(desk.input).toHaveValue("not sent yet");
  await other.page.close();
  await desk.input.fill("");
  await desk.work();
  await page.getByRole("button", { name: "Remove dot.png" }).click();
});

test("two tabs that send at once lose nothing", async ({ desk, page, context, thole }) => {
  await desk.ask("Begin sim: say ready");
  const other = new Desk(await context.newPage(), thole);
  await other.page.goto(page.url());
  await expect(other.said("ready").last()).toBeVisible();
  await Promise.all([desk.send("From the left sim: say left"), other.send("From the right sim: say right")]);
  for (const text of ["From the left sim: say left", "From the right sim: say right"]) await expect.poll(async () => (await runs(desk)).filter((it) => it === text).length).toBe(1);
  await expect(desk.input).toHaveValue("");
  await expect(other.input).toHaveValue("");
  await other.page.close();
});

test("a login that ran out keeps the message", async ({ desk, page, thole, context }) => {
  await desk.ask("Begin sim: say ready");
  await desk.input.fill("Kept sim: say still here");
  await context.clearCookies();
  await desk.input.press("Enter", { timeout: 5000 }).catch(() => {}); // the page may have noticed by itself
  await expect(page.getByRole("heading", { name: "Log in to thole" })).toBeVisible();
  await page.getByLabel("API token").fill(thole.cli("token", "create", `kept-${Date.now()}`).trim());
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(desk.input).toHaveValue("Kept sim: say still here");
  await desk.input.press("Enter");
  await expect(desk.said("still here").last()).toBeVisible();
  await ranOnce(desk, "Kept sim: say still here");
});

test("a page that lost its login while the server was away says so", async ({ desk, page, thole, context }) => {
  await desk.ask("Begin sim: say ready");
  await thole.stop("SIGKILL");
  await expect(page.getByText("Connection lost. Reconnecting…")).toBeVisible();
  await context.clearCookies();
  await thole.start();
  await expect(page.getByRole("heading", { name: "Log in to thole" })).toBeVisible({ timeout: 30_000 });
});

test("a retry that fails leaves the chat as it was", async ({ desk, page }) => {
  await desk.ask("Break sim: fail rate_limit");
  const retry = desk.chat.getByRole("button", { name: "Retry" }).first();
  await page.route("**/api/chat", (route) => route.abort("connectionrefused"));
  await retry.click();
  await expect(page.getByText("It is not known whether a new run began")).toBeVisible();
  await expect(desk.chat.getByText("Break sim:")).toHaveCount(1);
  await nothingRuns(desk);
  await page.unroute("**/api/chat");
  await retry.click();
  await expect.poll(async () => (await runs(desk)).length).toBe(2);
  await desk.idle();
});

test("what cannot be done says why and changes nothing", async ({ desk, page }) => {
  test.setTimeout(120_000);
  const refuse = (route: Route) => (["GET", "HEAD"].includes(route.request().method()) ? route.continue() : route.fulfill({ status: 503, contentType: "text/plain", body: "draining" }));
  const says = async () => {
    const toast = page.getByText(/That did not work: draining/);
    await expect(toast).toBeVisible();
    await page.getByRole("status").filter({ has: toast }).getByRole("button", { name: "Close" }).click();
    await expect(toast).toHaveCount(0);
  };
  await desk.ask("Stubborn sim: say ready");
  const list = page.getByRole("navigation", { name: "Chats" });
  const url = page.url();
  const entry = list.getByRole("listitem").filter({ hasText: "Stubborn" }).first();
  await page.route("**/*", refuse);

  await entry.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await says();
  expect(page.url()).toBe(url);

  await entry.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await list.getByRole("textbox", { name: "Rename" }).fill("A new name");
  await list.getByRole("textbox", { name: "Rename" }).press("Enter");
  await says();
  await expect(list.getByRole("textbox", { name: "Rename" })).toHaveValue("A new name");
  await list.getByRole("textbox", { name: "Rename" }).press("Escape");

  const permissions = page.getByRole("radiogroup", { name: "Permissions" });
  const chosen = await permissions.getByRole("radio", { checked: true }).evaluate((it) => it.parentElement!.textContent);
  await permissions.getByText(chosen === "Full" ? "Plan" : "Full").click();
  await says();
  expect(await permissions.getByRole("radio", { checked: true }).evaluate((it) => it.parentElement!.textContent)).toBe(chosen);
  await page.unroute("**/*");

  await desk.send("Carefully sim: ask Which colour? | Green | Blue ;; say thanks");
  await desk.chat.getByText("Blue", { exact: true }).click();
  await expect(desk.stopButton).toBeVisible();
  await desk.send("queued one");
  const queue = page.getByRole("region", { name: "Queued messages" });
  await expect(queue.getByText("queued one")).toBeVisible();
  await page.route("**/*", refuse);
  await desk.chat.getByRole("button", { name: "Answer", exact: true }).click();
  await says();
  await expect(desk.chat.getByRole("radio", { name: "Blue" })).toBeChecked();
  await desk.stopButton.click();
  await says();
  await expect(desk.stopButton).toBeEnabled();
  await queue.getByRole("button", { name: "Remove" }).click();
  await says();
  await queue.getByRole("button", { name: "Edit" }).click();
  await queue.getByRole("textbox").fill("queued one, edited");
  await queue.getByRole("button", { name: "Save" }).click();
  await says();
  await expect(queue.getByRole("textbox")).toHaveValue("queued one, edited");
  await page.unroute("**/*");
  await queue.getByRole("button", { name: "Save" }).click();
  await expect(queue.getByText("queued one, edited")).toBeVisible();
  await desk.chat.getByRole("button", { name: "Answer", exact: true }).click();
  await desk.idle();
});
