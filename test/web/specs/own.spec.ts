import { Desk, expect, test } from "../lab/test.ts";

// What a person sees of their own: where the time of runs went, what they used, which logins agents use.

/** setBudget limits each user, and answers with the budget's id: the others of this thole need it gone. */
const setBudget = (desk: Desk, limit: string): string => (JSON.parse(desk.thole.cli("budget", "set", "user", limit, "--json")) as { id: string }).id;

const narrow = { width: 320, height: 640 };

test("a run says what its time was spent on, also after a reload", async ({ desk, page }) => {
  await desk.newChat();
  await desk.send("Time sim: run sleep 1 ;; say rested");
  await desk.chat.getByRole("button", { name: "Allow", exact: true }).click();
  await desk.idle();
  const split = desk.chat.getByRole("img", { name: /^model .*, tools 1s, you [1-9].*, overhead / });
  await expect(split).toBeVisible();
  await desk.tab("Agent");
  await expect(page.getByRole("tabpanel").getByRole("heading", { name: "Where the time went" })).toBeVisible();
  await desk.accessible();
  await page.reload();
  await expect(split).toBeVisible();
});

test("an agent is connected, tested and disconnected, and the key is never shown", async ({ desk, page }) => {
  const key = "sk-planted-0123456789abcdef";
  const answers: string[] = [];
  page.on("response", (response) => void response.text().then((it) => answers.push(it)).catch(() => {}));
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("link", { name: "Connections" }).click();
  await expect(page).toHaveURL(/\/connections$/);
  const agents = page.getByRole("region", { name: "Agents" });
  const codex = agents.getByRole("listitem").filter({ hasText: "Codex" });
  await expect(codex.getByText("demo: the scripted model of --demo")).toBeVisible();
  await codex.getByRole("button", { name: "Connect" }).click();
  await codex.getByLabel("API key").last().fill(key);
  await desk.accessible();
  await codex.getByRole("button", { name: "Save" }).click();
  await expect(codex.getByRole("button", { name: "Replace" })).toBeVisible();
  const secrets = page.getByRole("region", { name: "Secrets" });
  await expect(secrets.getByText("active", { exact: true })).toBeVisible();
  await expect(secrets.getByText("never used")).toBeVisible();
  await secrets.getByRole("button", { name: "Test" }).click();
  await expect(secrets.getByText(/last used/)).toBeVisible();
  await desk.accessible();
  await desk.shot("connections");
  await page.setViewportSize(narrow);
  await desk.fits();
  await page.reload();
  await expect(secrets.getByText("codex", { exact: true })).toBeVisible();
  await secrets.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog", { name: "Revoke this secret?" }).getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByText("No secrets yet.")).toBeVisible();
  await expect(codex.getByRole("button", { name: "Connect" })).toBeVisible();
  expect(answers.length).toBeGreaterThan(5);
  expect(answers.filter((it) => it.includes(key))).toEqual([]);
});

test("who did not log in by a link just now proves it again before a secret is set", async ({ thole, browser }) => {
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(thole.base);
  await page.getByLabel("API token").fill(thole.cli("token", "create", "--scope", "admin", "old").trim());
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(new Desk(page, thole).input).toBeVisible();
  await page.goto(`${thole.base}/me/connections`);
  const claude = page.getByRole("region", { name: "Agents" }).getByRole("listitem").filter({ hasText: "Claude" });
  await claude.getByRole("button", { name: "Connect" }).click();
  await claude.getByLabel("API key").last().fill("sk-another");
  await claude.getByRole("button", { name: "Save" }).click();
  await expect(claude.getByRole("alert")).toContainText("Confirm that it is you");
  await claude.getByLabel("Code or link of a new login").fill("not-a-code");
  await claude.getByRole("button", { name: "Save" }).click();
  await expect(claude.getByRole("alert")).toContainText("used or is too old");
  await claude.getByLabel("Code or link of a new login").fill(thole.loginLink());
  await claude.getByRole("button", { name: "Save" }).click();
  await expect(claude.getByRole("button", { name: "Replace" })).toBeVisible();
  thole.cli("secret", "rm", "claude");
  await context.close();
});

test("usage is shown by day, model and chat, in cost and in tokens, and goes into a file", async ({ desk, page }) => {
  const budget = setBudget(desk, "5k tokens");
  await desk.newChat();
  await desk.ask("Count me sim: usage in=1200 out=300 ;; say counted");
  await page.goto(`${desk.thole.base}/me/usage`);
  await expect(page.getByRole("heading", { name: "Usage", exact: true })).toBeVisible();
  const budgets = page.getByRole("region", { name: "Budgets" });
  await expect(budgets.getByText(/5,000 tokens a month for each user/)).toBeVisible();
  await expect(budgets.getByText(/[1-9].* tokens of 5,000 tokens used/)).toBeVisible();
  await expect(budgets.getByText(/starts again/)).toBeVisible();
  await page.getByRole("combobox", { name: "Measure" }).selectOption("tokens");
  const chats = page.getByRole("region", { name: "By chat" });
  await expect(chats.getByRole("link", { name: /Count me/ })).toBeVisible();
  await expect(page.getByRole("region", { name: "By model" }).getByRole("row")).not.toHaveCount(1);
  await desk.shot("usage");
  await page.getByText("Show as a table").click();
  await expect(page.getByRole("table", { name: "By day" }).getByRole("row")).toHaveCount(2);
  await desk.accessible();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  expect((await download).suggestedFilename()).toBe("usage.csv");
  await page.reload();
  await expect(page.getByRole("combobox", { name: "Measure" })).toHaveValue("tokens");
  await page.setViewportSize(narrow);
  await desk.fits();
  await chats.getByRole("link", { name: /Count me/ }).click();
  await expect(desk.said("counted")).toBeVisible();
  desk.thole.cli("budget", "rm", budget);
});

test("a message that a budget refuses says so and leads to the usage page", async ({ desk, page, expected }) => {
  expected.push(/409/);
  await desk.newChat();
  await desk.ask("Used sim: usage in=100 out=10 ;; say used");
  const budget = setBudget(desk, "1 tokens");
  await desk.send("Too much sim: say never");
  await expect(desk.chat.getByText(/the budget of this user is spent/)).toBeVisible();
  await desk.accessible();
  await desk.chat.getByRole("link", { name: "See usage and budgets" }).click();
  await expect(page.getByRole("region", { name: "Budgets" }).getByText("used up")).toBeVisible();
  desk.thole.cli("budget", "rm", budget);
});

test("a run that fails for want of a login leads to the connections", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("No login sim: http 401");
  await desk.chat.getByRole("link", { name: "Manage connections" }).click();
  await expect(page.getByRole("heading", { name: "Connections", exact: true })).toBeVisible();
});
