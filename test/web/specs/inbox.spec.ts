import type { Page } from "@playwright/test";
import { begin, over } from "../lab/begin.ts";
import { Desk, expect, test } from "../lab/test.ts";
import type { Thole } from "../lab/thole.ts";

// Everything that waits for a person, in one place; what the tab says of it; and notices while nobody looks.

const badge = (page: Page) => page.getByRole("complementary", { name: "Chats" }).getByRole("link", { name: /^Inbox/ });

test("questions of all chats are answered in the inbox", async ({ desk, page }) => {
  await page.goto(`${desk.thole.base}/inbox`);
  const inbox = page.getByRole("region", { name: "Inbox" });
  await expect(inbox.getByText("Nothing waits for you")).toBeVisible();
  await desk.accessible();
  await begin(page, "sim: run echo first-one ;; say ran %tool%", "Command chat");
  await begin(page, "sim: ask Left or right? | Left | Right ;; say we turn", "Choice chat");
  const id = await begin(page, "sim: write notes.txt hello there ;; say written", "File chat");

  // They appear by themselves, each with its chat and with what it is about.
  const entry = (chat: string) => inbox.getByRole("listitem").filter({ has: page.getByRole("link", { name: chat }) });
  await expect(entry("Command chat").getByText("echo first-one")).toBeVisible();
  await expect(entry("Choice chat").getByRole("heading", { name: "Left or right?" })).toBeVisible();
  await expect(entry("File chat").getByText("hello there")).toBeVisible();
  await expect(badge(page)).toHaveAccessibleName("Inbox 3 questions wait");
  await expect(page).toHaveTitle("(3) Inbox · thole");
  await expect(page.locator('link[rel="icon"]')).toHaveAttribute("href", "/icon-ask.svg");
  await desk.accessible();
  await desk.shot("inbox");

  await entry("Command chat").getByRole("button", { name: "Allow", exact: true }).click();
  await expect(entry("Command chat").getByText("Allow", { exact: true })).toBeVisible();
  await entry("Choice chat").getByText("Right", { exact: true }).click();
  await entry("Choice chat").getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page).toHaveTitle("(1) Inbox · thole");

  // Answered in the chat itself, in another tab: the inbox knows.
  const other = new Desk(await page.context().newPage(), desk.thole);
  await other.page.goto(`${desk.thole.base}/c/${id}`);
  await expect(other.page).toHaveTitle("(1) ● File chat · thole");
  await other.chat.getByRole("button", { name: "Decline", exact: true }).click();
  await expect(other.page).toHaveTitle("File chat · thole");
  await other.page.close();
  await expect(entry("File chat").getByText("answered elsewhere")).toBeVisible();
  await expect(page).toHaveTitle("Inbox · thole");
  await expect(page.locator('link[rel="icon"]')).toHaveAttribute("href", "/icon.svg");
  await expect(badge(page)).toHaveAccessibleName("Inbox");

  // What is settled is gone when one comes back, and the chats went on.
  await entry("Command chat").getByRole("link").click();
  await expect(desk.said("ran first-one")).toBeVisible();
  await badge(page).click();
  await expect(inbox.getByText("Nothing waits for you")).toBeVisible();
});

test("a question that came while the server was away is in the inbox after it", async ({ desk, page, thole, expected }) => {
  expected.push(/Failed to load resource|\/events|net::ERR|50\d/);
  await page.goto(`${thole.base}/inbox`);
  await begin(page, "sim: ask Still there? | Yes ;; say good", "Patient chat");
  await expect(page.getByRole("link", { name: "Patient chat" }).last()).toBeVisible();
  await thole.stop();
  await thole.start();
  await expect(page.getByText("Connection lost")).toHaveCount(0);
  await page.getByRole("main").getByText("Yes", { exact: true }).click();
  await page.getByRole("main").getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page).toHaveTitle("Inbox · thole");
});

interface Shown {
  title: string;
  body: string;
  tag: string;
}

/** listening keeps what the browser would show, and lets the test hide the page: headless ones are always in sight. */
async function listening(page: Page): Promise<void> {
  await page.context().grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const at = window as unknown as { shown: Shown[]; hidden: boolean };
    at.shown = [];
    window.Notification = class extends EventTarget {
      static permission = "granted";
      static requestPermission = async () => "granted";
      onclick: (() => void) | null = null;
      constructor(title: string, options: NotificationOptions) {
        super();
        at.shown.push({ title, body: options.body!, tag: options.tag! });
        (window as unknown as { last: unknown }).last = this;
      }
      close() {
        at.shown = at.shown.filter((it) => it.tag !== this.tag);
      }
      tag = "";
    } as never;
    Object.defineProperty(document, "visibilityState", { get: () => (at.hidden ? "hidden" : "visible") });
  });
}

const shown = (page: Page) => page.evaluate(() => (window as unknown as { shown: Shown[] }).shown.map((it) => `${it.title}: ${it.body}`));
const hide = (page: Page, hidden: boolean) =>
  page.evaluate((hidden) => {
    (window as unknown as { hidden: boolean }).hidden = hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);

async function open(page: Page, thole: Thole, path: string): Promise<void> {
  await listening(page);
  await page.goto(`${thole.base}${path}`);
  await expect(page.getByRole("main")).toBeVisible();
}

test("ends and questions are shown once, only while no tab is in sight, and only when wanted", async ({ desk, page, thole }) => {
  await open(page, thole, "/settings");
  const wanted = page.getByRole("checkbox", { name: /Notify me when/ });
  await expect(wanted).not.toBeChecked();
  const second = await page.context().newPage();
  await open(second, thole, "/inbox");
  await hide(second, true);
  await hide(page, true);
  await over(page, await begin(page, "sim: say not wanted", "Unwanted"));
  await hide(page, false);
  await wanted.check();
  await desk.accessible();
  await over(page, await begin(page, "sim: say seen", "Seen"));
  await expect(page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /^Seen (?!.*running)/ })).toBeVisible();
  await hide(page, true);
  const id = await begin(page, "sim: ask Which way? | Left ;; say done", "Asked");
  const all = async () => [...(await shown(page)), ...(await shown(second))];
  await expect.poll(all).toEqual(["Asked: Which way?"]);
  await begin(page, "sim: fail rate_limit", "Broken");
  await expect.poll(all).toHaveLength(2);
  expect((await all())[1]).toMatch(/^Broken: Failed: /);
  await begin(page, "sim: say well", "Well");
  await expect.poll(all).toHaveLength(3);
  expect((await all())[2]).toBe("Well: Done");

  // The one that speaks is closed: another one does.
  const [speaks, other] = (await shown(page)).length ? [page, second] : [second, page];
  await speaks.close();
  await begin(other, "sim: say still shown", "Heir");
  await expect.poll(() => shown(other)).toEqual(["Heir: Done"]);
  await other.evaluate(() => (window as unknown as { last: { onclick: () => void } }).last.onclick());
  await expect(other.getByRole("heading", { name: "Heir" })).toBeVisible();
  await other.goto(`${thole.base}/c/${id}`);
  await other.getByRole("main").getByRole("button", { name: "Stop", exact: true }).click();
});
