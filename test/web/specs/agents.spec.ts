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
