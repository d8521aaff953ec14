import type { Page } from "@playwright/test";
import { randomUUID } from "node:crypto";
import { expect, test } from "../lab/test.ts";

// Keyboard only: nothing here is clicked.

const palette = (page: Page) => page.getByRole("combobox", { name: "Search chats, pages and actions" });
const options = (page: Page) => page.getByRole("dialog", { name: "Commands" }).getByRole("option");

test("the palette runs actions, opens pages and finds chats", async ({ desk, page, thole }) => {
  const other = randomUUID();
  await thole.background("thread", "start", "--id", other, "--name", "Oars and boats", "sim: say a word about haddock");
  await desk.newChat();
  await desk.ask("A chat of its own sim: say done");
  const own = desk.sessionID;
  await desk.input.focus();

  await page.keyboard.press("Control+k");
  await expect(palette(page)).toBeFocused();
  await desk.accessible();
  await page.keyboard.type("dark");
  await expect(options(page).first()).toHaveText(/Appearance: dark/);
  await expect(options(page).first()).toHaveAttribute("aria-selected", "true");
  const active = await palette(page).getAttribute("aria-activedescendant");
  expect(await page.evaluate((id) => document.getElementById(id!)?.textContent, active)).toContain("Appearance: dark");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(desk.input).toBeFocused(); // where it was before

  await page.keyboard.press("Control+k");
  await desk.accessible();
  await page.keyboard.type("oars");
  await expect(options(page).first()).toHaveText(/Oars and boats/);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/c/${other}`));

  // What was said in a chat is found by the server.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("haddock");
  const said = page.getByRole("group", { name: "Found in messages" }).getByRole("option", { name: /Oars and boats.*a word about haddock/ });
  await expect(said.first()).toBeVisible();
  await desk.accessible();
  await page.keyboard.press("Escape");
  await expect(palette(page)).toHaveCount(0);

  await page.keyboard.press("Control+k");
  await page.keyboard.type("a chat of its own");
  await expect(options(page).first()).toHaveText(/A chat of its own/i);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/c/${own}`));
  await page.keyboard.press("Control+k");
  await page.keyboard.type("rename");
  await expect(options(page).first()).toHaveText(/Rename/); // offered when the chat is there
  await page.keyboard.press("Enter");
  await expect(page.getByRole("textbox", { name: "Rename" })).toBeFocused();
  await page.keyboard.type("Renamed by keys");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /Renamed by keys/ })).toBeVisible();
  await expect(page.getByRole("dialog", { name: "Rename this chat" })).toBeHidden();

  await page.keyboard.press("Control+k");
  await page.keyboard.type("usage");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/usage$/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("no such thing anywhere");
  await expect(page.getByRole("dialog", { name: "Commands" }).getByText("Nothing found.")).toBeVisible();
});

test("an answer of the palette that comes late is not shown for another question", async ({ desk, page }) => {
  await desk.newChat();
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.route(/\/sessions\?search=slowly/, async (route) => {
    await held;
    await route.fulfill({ json: { items: [{ id: randomUUID(), name: "From the past", preview: "", updated_at: new Date().toISOString() }] } }).catch(() => {});
  });
  const asked = page.waitForRequest(/search=slowly/);
  // What is typed before the palette's file is here is not lost.
  let arrive = () => {};
  const arrived = new Promise<void>((done) => (arrive = done));
  await page.route("**/assets/palette-*.js", async (route) => {
    await arrived;
    await route.continue();
  });
  await page.keyboard.press("Control+k");
  await expect(page.getByRole("dialog", { name: "Commands" })).toBeVisible();
  await page.keyboard.type("slowly");
  arrive();
  await asked;
  const next = page.waitForResponse(/search=new/);
  await palette(page).fill("new");
  await next;
  release();
  await expect(options(page).first()).toHaveText(/New chat/);
  await expect(page.getByText("From the past")).toHaveCount(0);
});

test("the palette offers what a chat can do also when the chat comes after it", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("Late sim: say done");
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.route(`**/sessions/${desk.sessionID}/snapshot*`, async (route) => {
    await held;
    await route.continue();
  });
  const asked = page.waitForRequest(/\/snapshot/);
  await page.reload();
  await asked;
  await page.keyboard.press("Control+k");
  await page.keyboard.type("markdown");
  await expect(palette(page)).toHaveValue("markdown");
  await expect(options(page).filter({ hasText: "Markdown" })).toHaveCount(0);
  release();
  await expect(options(page).filter({ hasText: "Markdown" })).toBeVisible();
});

test("keys do what the overview says, never while a user types, and can be turned off", async ({ desk, page, thole }) => {
  for (const name of ["Older", "Newer"]) await thole.background("thread", "start", "--id", randomUUID(), "--name", `${name} chat`, "sim: say hello");
  await desk.newChat();
  await expect(page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /Newer chat/ })).toBeVisible();

  // In the field every letter is a letter.
  await desk.input.focus();
  await page.keyboard.type("?njk[]di");
  await expect(desk.input).toHaveValue("?njk[]di");
  await expect(page).toHaveURL(/\/new$/);
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await desk.input.fill("");

  await page.locator("main").focus();
  await page.keyboard.press("?");
  const overview = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(overview.getByText("Next chat")).toBeVisible();
  await desk.accessible();
  await page.keyboard.press("n"); // the dialog has the keys
  await expect(overview).toBeVisible();
  await page.keyboard.press("?");
  await expect(overview).toBeHidden();

  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { name: "Newer chat" })).toBeVisible();
  await page.locator("main").focus();
  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { name: "Older chat" })).toBeVisible();
  await page.locator("main").focus();
  await page.keyboard.press("k");
  await expect(page.getByRole("heading", { name: "Newer chat" })).toBeVisible();
  await page.locator("main").focus();
  await page.keyboard.press("[");
  await expect(page.getByRole("complementary", { name: "Chats" })).toBeHidden();
  await page.keyboard.press("[");
  await expect(page.getByRole("complementary", { name: "Chats" })).toBeVisible();
  await page.keyboard.press("]");
  await expect(page.getByRole("complementary", { name: "Details" })).toBeHidden();
  await page.keyboard.press("d");
  await expect(page.getByRole("tab", { name: "Changes" })).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("i");
  await expect(desk.input).toBeFocused();

  await desk.send("Long sim: slow 200ms 1 ;; say a long story that never comes to its end because the user stops it");
  await expect(desk.stopButton).toBeVisible();
  await page.keyboard.press("Control+.");
  await desk.idle();
  await expect(desk.chat.getByText("Stopped").last()).toBeVisible();

  await page.keyboard.press("Control+/");
  await page.getByRole("checkbox", { name: /Use shortcuts/ }).focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("Escape");
  await page.locator("main").focus();
  await page.keyboard.press("n");
  await page.keyboard.press("?");
  await expect(page).toHaveURL(/\/c\//);
  await expect(overview).toBeHidden();
  await page.keyboard.press("Control+k");
  await expect(palette(page)).toBeFocused();
});

test("earlier messages come back with the arrows, and the draft after them", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("First prompt sim: say one");
  await desk.ask("Second prompt sim: say two");
  await desk.input.focus();
  await page.keyboard.type("half a thought");
  await page.keyboard.press("ArrowUp"); // to the beginning of the line, as in any field
  await expect(desk.input).toHaveValue("half a thought");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowUp");
  await expect(desk.input).toHaveValue("Second prompt sim: say two");
  await page.keyboard.press("ArrowUp");
  await expect(desk.input).toHaveValue("First prompt sim: say one");
  await page.keyboard.press("ArrowUp");
  await expect(desk.input).toHaveValue("First prompt sim: say one");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(desk.input).toHaveValue("half a thought");
  // Sent again, it leaves the draft where it was.
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await expect(desk.chat.getByText("First prompt sim: say one")).toHaveCount(2);
  await expect(desk.input).toHaveValue("half a thought");
  await desk.idle();
});
