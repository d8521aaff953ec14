import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Desk, expect, test as base } from "../lab/test.ts";
import { agentPath, type AgentName, Thole } from "../lab/thole.ts";

// The real CLIs on the scripted model, each through the same page.
const names: AgentName[] = ["codex", "claude", "opencode"];
const found = names.filter((name) => agentPath(name));

const test = base.extend<object, { thole: Thole }>({
  thole: [
    async ({}, use) => {
      const thole = new Thole(found);
      await thole.start();
      await use(thole);
      await thole.end();
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

for (const name of names) {
  test(`${name} answers, asks before a command and shows its output`, async ({ page, thole }) => {
    test.skip(!found.includes(name) && process.env.CI !== "true", `${name} is not installed: make setup`);
    test.setTimeout(150_000);
    const desk = new Desk(page, thole);
    await desk.logIn();
    await desk.newChat();
    await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption(name);
    await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Ask", { exact: true }).click();
    await desk.send("run touch made-by-agent && echo it-was-made");
    const allow = desk.chat.getByRole("button", { name: "Allow", exact: true });
    await expect(allow.first()).toBeVisible({ timeout: 90_000 });
    await expect(page.getByRole("tabpanel").getByText(new RegExp(`^${name}`)).first()).toBeVisible();
    await desk.shot(`agent-${name}`);
    await allow.first().click();
    await desk.idle();
    await expect(desk.said("it-was-made").last()).toBeVisible();
    await expect(desk.chat.getByRole("button", { name: /touch made-by-agent.*exit 0/ })).toBeVisible();
  });
}

test("a chat stays with its agent: another agent begins a new one", async ({ page, thole }) => {
  test.skip(found.length < 2 && process.env.CI !== "true", "two agents are needed: make setup");
  test.setTimeout(150_000);
  const [one, two] = found as [AgentName, AgentName];
  const desk = new Desk(page, thole);
  const agent = page.getByRole("combobox", { name: "Agent", exact: true });
  await desk.logIn();
  await desk.newChat();
  await agent.selectOption(one);
  await desk.ask("say hello from the first");
  const first = desk.sessionID;
  await agent.selectOption(two);
  await expect(page).toHaveURL(/\/new$/);
  await expect(agent).toHaveValue(two);
  await desk.ask("say hello from the second");
  expect(desk.sessionID).not.toBe(first);
  await expect(desk.chat.getByText(new RegExp(`^${two}`)).last()).toBeVisible();
  await page.goto(`${thole.base}/c/${first}`);
  await expect(agent).toHaveValue(one);
});

test("the skills of each agent are offered before a chat has begun", async ({ page }) => {
  test.skip(found.length < names.length && process.env.CI !== "true", "an agent is not installed: make setup");
  const thole = new Thole(found, undefined, false);
  for (const dir of [".claude", ".codex"]) thole.write(`${dir}/skills/rowing/SKILL.md`, "---\nname: rowing\ndescription: How to row\n---\nRow gently.\n");
  try {
    await thole.start();
    const desk = new Desk(page, thole);
    await desk.logIn();
    await desk.newChat();
    for (const [name, insert] of [["codex", "$rowing "], ["claude", "/rowing "], ["opencode", "Use the skill rowing: "]] as const) {
      await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption(name);
      await desk.input.fill("");
      await desk.input.focus();
      await page.keyboard.type("/row");
      await expect(page.getByRole("option", { name: /^\/rowing\s*Skill of/ })).toBeVisible();
      await page.keyboard.press("Enter");
      await expect(desk.input).toHaveValue(insert);
    }
  } finally {
    await thole.end();
  }
});

test("what a tool's server asks for is filled in, checked, and reaches the server", async ({ page, thole }) => {
  test.skip(!found.includes("claude") && process.env.CI !== "true", "claude is not installed: make setup");
  // A server of the project counts where the agent may do everything.
  thole.write("shop/shop.mjs", readFileSync(new URL("../lab/shop.mjs", import.meta.url), "utf8"));
  thole.write("shop/.mcp.json", JSON.stringify({ mcpServers: { shop: { command: process.execPath, args: ["shop.mjs"] } } }));
  const where = ["--cd", join(thole.root, "shop"), "--here", "--profile", "full", "--model", "claude/default", "--on-ask", "wait", "--json"];
  const turn = thole.background("run", ...where, "Order sim: call mcp__shop__order {} ;; say heard: %tool%");
  const open = () => JSON.parse(thole.cli("inbox", "--json")) as { thread_id: string; kind: string }[];
  await expect.poll(() => open().map((it) => it.kind), { timeout: 90_000 }).toEqual(["elicitation"]);
  const desk = new Desk(page, thole);
  await desk.logIn();
  await page.goto(`${thole.base}/c/${open()[0]!.thread_id}`);
  const ask = desk.chat.getByRole("region", { name: "A tool asks for information" });
  await expect(ask).toContainText("What shall it be?");
  const answer = ask.getByRole("button", { name: "Answer" });
  await answer.click();
  await expect(ask.getByRole("alert")).toHaveText(["Fill in this field.", "Fill in this field.", "Fill in this field."]);
  await expect(ask.getByRole("textbox", { name: "Name on the cup" })).toBeFocused();
  await desk.accessible();

  // By keyboard alone.
  await page.keyboard.type("Ada");
  await page.keyboard.press("Tab");
  await page.keyboard.type("nobody");
  await page.keyboard.press("Tab");
  await page.keyboard.type("9");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  await page.keyboard.type("large");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await expect(ask.getByRole("alert")).toHaveText(["Enter a mail address.", "Enter 4 or less."]);
  await ask.getByRole("textbox", { name: "Mail" }).fill("ada@example.org");
  await ask.getByRole("textbox", { name: "Cups" }).fill("3");
  await page.setViewportSize({ width: 320, height: 640 });
  await desk.fits();
  await answer.click();
  await expect(desk.said('ordered {"name":"Ada","mail":"ada@example.org","cups":3,"hot":true,"size":"large","extras":["honey"]}')).toBeVisible({ timeout: 60_000 });
  expect(await turn).toContain('"status":"completed"');
});
