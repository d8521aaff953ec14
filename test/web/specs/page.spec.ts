import { devices } from "@playwright/test";
import { Desk, expect, test } from "../lab/test.ts";

const rich = "Show everything sim: think I look at the pieces. ;; todo [x] look | [~] change | test ;; run printf 'ok\\n' ;; write src/a/very/long/path/to/some/module/which/is/deep/notes.txt hello there ;; say Here is a table:\\n\\n| name | value |\\n|---|---|\\n| a | 1 |\\n\\nand `code`:\\n\\n```go\\n// row pulls once.\\nfunc row(n int) string { return \"pull\" }\\n```";

test("the first page names the agents that are missing and the command for each", async ({ desk }) => {
  await desk.newChat();
  const agents = desk.page.getByRole("region", { name: "Agents on this machine" });
  await expect(agents.getByText(/npm install -g @openai\/codex/).last()).toBeVisible();
  await expect(agents.getByText(/npm install -g @anthropic-ai\/claude-code@/).last()).toBeVisible();
  await expect(agents.getByText("It is not installed on this machine.")).toHaveCount(3);
  await expect(agents.getByText(/provider:|PATH/)).toHaveCount(0); // words of the program
  await expect(agents.getByText("ready", { exact: true })).toBeVisible();
  await desk.accessible();
  await desk.shot("welcome");
});

test("a link works once", async ({ thole, browser }) => {
  const link = thole.loginLink();
  const visit = async () => {
    const context = await browser.newContext({ locale: "en-US" });
    const page = await context.newPage();
    const asked = page.waitForResponse((it) => it.request().method() === "POST");
    await page.goto(link);
    return { page, status: (await asked).status(), leave: () => context.close() };
  };
  const first = await visit();
  expect(first.status).toBe(200);
  await expect(first.page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  const second = await visit();
  expect(second.status).toBe(401);
  await expect(second.page.getByRole("heading", { name: "This link does not work any more" })).toBeVisible();
  await second.page.goto(thole.base);
  await expect(second.page.getByRole("heading", { name: "Log in to thole" })).toBeVisible();
  await first.leave();
  await second.leave();
});

test("without a link the page says how to log in, and takes a token", async ({ thole, browser }) => {
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(thole.base);
  await expect(page.getByRole("heading", { name: "Log in to thole" })).toBeVisible();
  await expect(page.getByText("thole login", { exact: true })).toBeVisible();
  const use = async (token: string) => {
    await page.getByLabel("API token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
  };
  await use("thole_wrong");
  await expect(page.getByRole("alert")).toBeVisible();
  await use(thole.cli("token", "create", "browser").trim());
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  await context.close();
});

test("chats are searched, renamed, archived and deleted", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("Findable words sim: say found");
  const list = page.getByRole("navigation", { name: "Chats" });
  await page.getByRole("searchbox", { name: "Search chats" }).fill("findable");
  const hits = list.getByRole("region", { name: "Found in messages" });
  await expect(hits.getByRole("link")).toHaveCount(1);
  await expect(hits.locator("mark")).toHaveText("Findable");
  await expect(list.getByRole("link")).toHaveCount(2);
  await list.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await list.getByRole("textbox", { name: "Rename" }).fill("Renamed chat");
  await list.getByRole("textbox", { name: "Rename" }).press("Enter");
  await expect(list.getByRole("link", { name: /Renamed chat/ })).toBeVisible();
  await page.getByRole("searchbox", { name: "Search chats" }).fill("");
  await list.getByRole("button", { name: "Actions for Renamed chat" }).click();
  await page.getByRole("menuitem", { name: "Archive" }).click();
  await expect(list.getByRole("link", { name: /Renamed chat/ })).toHaveCount(0);
  await page.getByRole("button", { name: "Archived" }).click();
  await list.getByRole("button", { name: "Actions for Renamed chat" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(list.getByRole("link", { name: /Renamed chat/ })).toHaveCount(0);
  await expect(page).toHaveURL(/\/new$/);
});

for (const scheme of ["light", "dark"] as const) {
  test(`a full chat is accessible, ${scheme}`, async ({ desk, page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await desk.newChat();
    await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
    await desk.ask(rich);
    for (const tab of ["Agent", "Todo", "Ask", "Jobs"] as const) {
      await desk.tab(tab);
      await desk.accessible();
    }
    await desk.tab("Agent");
    await desk.shot(`chat-${scheme}`, "Notes and a table");
  });

  test(`nothing overflows on a phone, ${scheme}`, async ({ thole, browser }) => {
    const context = await browser.newContext({ ...devices["iPhone 13"], defaultBrowserType: undefined, viewport: { width: 390, height: 844 }, colorScheme: scheme, locale: "en-US" });
    const desk = new Desk(await context.newPage(), thole);
    await desk.logIn();
    await desk.newChat();
    await desk.fits();
    await desk.page.getByRole("combobox", { name: "Permissions" }).selectOption("full");
    await desk.ask(rich);
    await desk.fits();
    await desk.accessible();
    await desk.shot(`phone-${scheme}`, "Notes and a table");
    await desk.page.getByRole("button", { name: "Show chats" }).click();
    await expect(desk.page.getByRole("dialog", { name: "Chats" })).toBeVisible();
    await desk.accessible();
    await desk.page.keyboard.press("Escape");
    await desk.page.getByRole("button", { name: "Show details" }).click();
    for (const tab of ["Agent", "Todo", "Ask", "Jobs"] as const) {
      await desk.tab(tab);
      await desk.fits();
    }
    await desk.tab("Todo");
    await desk.shot(`phone-details-${scheme}`);
    await context.close();
  });
}

test("nothing jumps while an answer streams", async ({ desk, page }) => {
  await desk.newChat();
  await page.evaluate(() => {
    const shifts: number[] = ((window as never as { shifts: number[] }).shifts = []);
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]) if (!entry.hadRecentInput) shifts.push(entry.value);
    }).observe({ type: "layout-shift", buffered: false });
  });
  await desk.send(`Long sim: slow 15ms 12 ;; say ${Array.from({ length: 60 }, (_, n) => `Paragraph ${n} with a few words in it.`).join("\\n\\n")}`);
  await page.waitForTimeout(1000); // the page changes from welcome to chat once
  await page.evaluate(() => ((window as never as { shifts: number[] }).shifts.length = 0));
  await desk.idle();
  await expect(desk.page.locator(".prose p").last()).toBeInViewport();
  expect(await page.evaluate(() => (window as never as { shifts: number[] }).shifts.reduce((sum, it) => sum + it, 0))).toBeLessThan(0.05);
});

test("the newest stays in sight where text grows by more than the page can draw", async ({ desk, page }) => {
  await desk.newChat();
  const browser = await page.context().newCDPSession(page);
  await browser.send("Emulation.setCPUThrottlingRate", { rate: 20 });
  await desk.send(`Fast sim: slow 5ms 40 ;; say ${Array.from({ length: 90 }, (_, n) => `Paragraph ${n} with a few words in it.`).join("\\n\\n")}`);
  await desk.idle();
  await browser.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await expect(page.locator(".prose p").last()).toBeInViewport();
});

test("a reader who went up is left alone", async ({ desk, page }) => {
  await desk.newChat();
  await desk.send(`Read sim: slow 25ms 12 ;; say ${Array.from({ length: 80 }, (_, n) => `Line ${n} of the text.`).join("\\n\\n")}`);
  await expect(desk.said("Line 30 of the text.")).toBeVisible();
  const list = page.getByRole("region", { name: "Chat", exact: true });
  await list.hover();
  await page.mouse.wheel(0, -500);
  await expect(page.getByRole("button", { name: "Jump to the newest" })).toBeVisible();
  const before = await list.evaluate((it) => it.scrollTop);
  await page.waitForTimeout(700);
  expect(Math.abs((await list.evaluate((it) => it.scrollTop)) - before)).toBeLessThan(4);
  await page.getByRole("button", { name: "Jump to the newest" }).click();
  await desk.idle();
  await expect(desk.page.locator(".prose p").last()).toBeInViewport();
});

test("every part is reached with the keyboard", async ({ desk, page }) => {
  await desk.newChat();
  const seen: string[] = [];
  await page.locator("body").press("Tab");
  // Once around, however many chats other tests have left in the list.
  for (let n = 0; n < 400 && !(n > 1 && seen.at(-1)?.startsWith("Skip to the chat")); n++) {
    seen.push(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent?.trim().slice(0, 40) ?? ""));
    await page.keyboard.press("Tab");
  }
  const order = ["Skip to the chat", "New chat", "Search chats", "Message", "Agent"].map((name) => seen.findIndex((it) => it.startsWith(name)));
  expect(order.every((it) => it >= 0), `${order} in ${seen}`).toBe(true);
  expect(order).toEqual([...order].sort((a, b) => a - b));
  await page.getByRole("tab", { name: "Agent" }).focus();
  for (const name of ["Changes", "Todo", "Ask", "Jobs", "Agent"]) {
    await page.keyboard.press("ArrowRight");
    await expect(page.getByRole("tab", { name: new RegExp(`^${name}`) })).toBeFocused();
  }
});

test("the page speaks Chinese", async ({ desk, page }) => {
  await desk.newChat();
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByText("中文").click();
  await desk.accessible();
  await page.getByRole("button", { name: "新对话" }).click();
  await expect(page.getByRole("heading", { name: "需要代理做什么？" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
  await desk.accessible();
});

test("a page whose files are gone still shows the words", async ({ desk, page, expected }) => {
  expected.push(/assets\/(markdown|code)|Failed to load resource/);
  for (const file of ["markdown", "code"]) {
    await page.route(`**/assets/${file}-*.js`, (route) => route.fulfill({ status: 404, contentType: "text/plain", body: "there is no such file" }));
    await desk.newChat({ load: true });
    await desk.send("Words sim: say ```go\\nfunc row() {}\\n```");
    await expect(desk.said("func row() {}").last()).toBeVisible();
    await desk.idle();
    await page.unroute(`**/assets/${file}-*.js`);
  }
});
