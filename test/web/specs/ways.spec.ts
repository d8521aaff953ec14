import { Desk, expect, test } from "../lab/test.ts";

// How a person moves around: back, Escape, where the caret is, and what a chat says that is no more.

const slow = "Slowly sim: slow 200ms 1 ;; say one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";

/** drop deletes a chat as another client would. */
const drop = (desk: Desk, id: string) =>
  desk.page.evaluate((id) => fetch(`/sessions/${id}`, { method: "DELETE", headers: { "thole-proof": localStorage.getItem("thole.proof")! } }).then((it) => it.status), id);
const statusOf = (desk: Desk, id: string) =>
  desk.page.evaluate((id) => fetch(`/sessions/${id}`, { headers: { "thole-proof": localStorage.getItem("thole.proof")! } }).then((it) => it.status), id);

/** question opens a dialog: whether the newest chat may be deleted. */
async function question(desk: Desk) {
  await desk.page.getByRole("button", { name: /Actions for/ }).first().click();
  await desk.page.getByRole("menuitem", { name: "Delete" }).click();
  const dialog = desk.page.getByRole("dialog", { name: "Delete this chat?" });
  await expect(dialog).toBeVisible();
  return dialog;
}

test("a chat that is deleted elsewhere says so, and keeps what was being written", async ({ desk, page, context, thole, expected }) => {
  expected.push(/404 .*\/sessions\/[^/]*\/files|status of 404 .*\/files/); // what a panel asked just before it knew
  await desk.newChat();
  await desk.ask("Gone elsewhere sim: say ready");
  const id = desk.sessionID;
  await desk.input.fill("half a thought");
  const other = new Desk(await context.newPage(), thole);
  await other.page.goto(`${thole.base}/new`);
  await expect(other.input).toBeEnabled();
  expect(await drop(other, id)).toBe(204);
  await expect(desk.chat.getByText("This chat was deleted.")).toBeVisible();
  await expect(desk.chat.getByText("half a thought")).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /Gone elsewhere/ })).toHaveCount(0);
  await other.page.close();
});

test("a message to a chat that was deleted on the way does not make it again", async ({ desk, page, context, thole, expected }) => {
  expected.push(/404/);
  await desk.newChat();
  await desk.ask("Begin sim: say ready");
  const id = desk.sessionID;
  const other = new Desk(await context.newPage(), thole);
  await other.page.goto(`${thole.base}/new`);
  await expect(other.input).toBeEnabled();
  await page.route("**/api/chat", async (route) => {
    expect(await drop(other, id)).toBe(204);
    await route.continue().catch(() => {}); // the page may have let go of it
  });
  await desk.send("Is anybody there? sim: say yes");
  await expect(desk.chat.getByText("This chat was deleted.")).toBeVisible();
  await expect(desk.chat.getByText("Is anybody there?")).toBeVisible();
  expect(await statusOf(other, id)).toBe(404);
  await other.page.close();
});

test("the phases of a run are the same after a reload", async ({ desk, page }) => {
  await desk.newChat();
  await desk.send("Carefully sim: run echo allowed ;; say finished");
  await desk.chat.getByRole("button", { name: "Allow", exact: true }).click();
  await desk.idle();
  await desk.tab("Agent");
  const phases = page.getByRole("tabpanel").getByRole("listitem");
  await expect(phases.last()).toContainText("Succeeded");
  const names = async () => (await phases.allTextContents()).map((it) => it.replace(/[\d:.]+.*$/, ""));
  const before = await names();
  expect(before.length).toBeGreaterThan(4);
  await page.reload();
  await expect.poll(names).toEqual(before);
});

test("on a phone the way back closes a drawer, and a chat chosen there leaves none behind", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("Begin sim: say ready");
  const chat = page.url();
  await page.goto(`${desk.thole.base}/new`);
  await page.setViewportSize({ width: 390, height: 800 });
  const drawer = page.getByRole("dialog", { name: "Chats" });
  await page.getByRole("button", { name: "Show chats" }).click();
  await expect(drawer).toBeVisible();
  await page.goBack();
  await expect(drawer).toBeHidden();
  await expect(page).toHaveURL(/\/new$/);
  await page.getByRole("button", { name: "Show chats" }).click();
  await drawer.getByRole("button", { name: "Close" }).click();
  await expect(drawer).toBeHidden();
  await page.getByRole("button", { name: "Show chats" }).click();
  await drawer.getByRole("link", { name: /Begin sim/ }).first().click();
  await expect(page).toHaveURL(chat);
  await expect(drawer).toBeHidden();
  await page.goBack();
  await expect(page).toHaveURL(/\/new$/);
  await expect(drawer).toBeHidden();
});

test("Escape closes what is open first, and then stops the answer", async ({ desk, page }) => {
  await desk.newChat();
  await desk.send(slow);
  await expect(desk.said("two")).toBeVisible();
  const dialog = await question(desk);
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(desk.stopButton).toBeEnabled();
  await page.getByRole("searchbox", { name: "Search chats" }).press("Escape");
  await expect(desk.stopButton).toBeEnabled();
  await desk.input.press("Escape");
  await desk.idle();
  await expect(desk.chat.getByText("Stopped").first()).toBeVisible();
});

test("the caret is in the field after sending, choosing a chat and closing a dialog", async ({ desk, page }) => {
  await desk.newChat();
  await desk.input.fill("Begin sim: say ready");
  await desk.sendButton.click();
  await expect(desk.input).toBeFocused();
  await desk.idle();
  await page.getByRole("button", { name: "New chat" }).first().click();
  await expect(desk.input).toBeFocused();
  await page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /Begin sim/ }).first().click();
  await expect(desk.input).toBeFocused();
  await (await question(desk)).getByRole("button", { name: "Cancel" }).click();
  await expect(desk.input).toBeFocused();
});

test("what is being written stays with its chat, through a switch and the server's absence", async ({ desk, page, thole, expected }) => {
  expected.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY|Failed to load/);
  await desk.newChat();
  await desk.ask("First sim: say ready");
  const chat = page.url();
  await desk.input.fill("for the first");
  await page.getByRole("button", { name: "New chat" }).first().click();
  await expect(desk.input).toHaveValue("");
  await desk.input.fill("for a new one");
  await thole.stop("SIGKILL");
  await page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /First sim/ }).first().click();
  await thole.start();
  await expect(desk.input).toHaveValue("for the first");
  await page.reload();
  await expect(desk.input).toHaveValue("for the first");
  await expect(page).toHaveURL(chat);
  await page.getByRole("button", { name: "New chat" }).first().click();
  await expect(desk.input).toHaveValue("for a new one");
  await desk.input.fill("");
});
