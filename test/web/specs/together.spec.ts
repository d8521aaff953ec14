import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { Terminal } from "../lab/terminal.ts";
import { Desk, expect, test } from "../lab/test.ts";
import { agentPath } from "../lab/thole.ts";

test.beforeEach(async ({ desk }) => desk.newChat());

const slow = "Count sim: slow 60ms 5 ;; say one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty, the end of it";

test("a reload in the middle of an answer shows it once and to its end", async ({ desk, page }) => {
  await desk.send(slow.replace("60ms", "250ms")); // longer than a reload takes
  await expect(desk.said("one two three four")).toBeVisible();
  await page.reload();
  await expect(desk.stopButton).toBeVisible();
  await desk.idle();
  await expect(desk.chat.locator("p", { hasText: /^one two .* the end of it$/ })).toHaveCount(1);
  await expect(desk.chat.getByText("Count sim:")).toHaveCount(1);
});

test("a second tab is in step, also with answers to questions", async ({ desk, page, thole, context }) => {
  await desk.ask("Begin sim: say ready to go");
  const other = new Desk(await context.newPage(), thole);
  await other.page.goto(page.url());
  await expect(other.chat.getByText("ready to go").last()).toBeVisible();
  await page.bringToFront();
  await desk.send("Both sim: ask Left or right? | Left | Right ;; say we turn");
  await expect(other.chat.getByText("Left or right?").last()).toBeVisible();
  await other.chat.getByText("Right", { exact: true }).click();
  await other.chat.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(desk.chat.getByText("answered elsewhere")).toBeVisible();
  await desk.idle();
  await other.idle();
  await expect(other.chat.getByText("Both sim:")).toHaveCount(1);
  await expect(desk.chat.getByText("Both sim:")).toHaveCount(1);
  await other.page.close();
});

test("ten tabs work on one browser", async ({ desk, page, thole, context }) => {
  await desk.ask("Tabs sim: say hello tabs");
  const tabs = await Promise.all(Array.from({ length: 9 }, () => context.newPage()));
  for (const tab of tabs) {
    await tab.goto(page.url());
    await expect(new Desk(tab, thole).chat.getByText("hello tabs").last()).toBeVisible();
  }
  const last = new Desk(tabs.at(-1)!, thole);
  await last.send("From the tenth sim: say heard by all");
  for (const tab of [page, ...tabs]) await expect(tab.getByRole("main").locator("p", { hasText: /^heard by all$/ })).toBeVisible();
  for (const tab of tabs) await tab.close();
});

test("what another client does appears by itself", async ({ desk, page }) => {
  await desk.ask("Start sim: say waiting for others");
  await page.evaluate(async (id) => {
    await fetch(`/sessions/${id}/runs`, { method: "POST", headers: { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof")! }, body: JSON.stringify({ text: "From a script sim: say the script was here" }) });
  }, desk.sessionID);
  await expect(desk.chat.getByText("From a script", { exact: false }).first()).toBeVisible();
  await expect(desk.chat.locator("p", { hasText: /^the script was here$/ })).toBeVisible();
  await desk.idle();
});

test("a terminal on the same thread is in step", async ({ desk, thole }) => {
  test.skip(!agentPath("codex") && process.env.CI !== "true", "codex is not installed: make setup");
  test.setTimeout(180_000);
  await desk.ask("Begin sim: say from the browser");
  const terminal = new Terminal(thole, desk.sessionID);
  try {
    await terminal.shows("• from the browser");
    await terminal.say("sim: run echo asked-there ;; say it printed %tool%");
    const card = desk.chat.getByRole("region", { name: "May this command run?" });
    await expect(card.getByLabel("Command")).toContainText("echo asked-there");
    await terminal.shows("Yes, proceed");
    await desk.shot("beside-a-terminal", "One thread, two places");
    await card.getByRole("button", { name: "Allow", exact: true }).click();
    await expect(desk.said("it printed asked-there").last()).toBeVisible();
    await terminal.shows("• it printed asked-there");
    await desk.idle();
    await desk.send("sim: run echo answered-there ;; say then %tool%");
    await terminal.shows(/answered-there[\s\S]*Yes, proceed/);
    terminal.key("y");
    await expect(desk.said("then answered-there").last()).toBeVisible();
    await expect(desk.chat.getByText("answered elsewhere").last()).toBeVisible();
    await desk.idle();
  } finally {
    terminal.end();
  }
});

test("a result that thole cannot prove waits for a person, who has three choices", async ({ desk, thole }) => {
  await desk.ask("Wait for results sim: say I will wait");
  await desk.tab("Jobs");
  const panel = desk.page.getByRole("tabpanel");
  const held = panel.getByRole("region", { name: "Needs your decision" });
  // The home was moved between a job's start and its end, so no channel reaches where it was, and nobody but a person can know what became of the
  // result.
  const move = (to: string) => {
    const moved = ["delivery_jobs", "delivery_lanes"].map((table) => `update ${table} set endpoint = '${to}' where thread_id = '${desk.sessionID}';`).join("");
    execFileSync("/usr/bin/python3", ["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30); c.executescript(sys.argv[2]); c.commit()", join(thole.home, "thole.db"), moved]);
  };
  const deliver = async (text: string) => {
    const job = JSON.parse(await thole.background("--json", "job", "submit", "--thread-id", desk.sessionID)) as { job_id: string };
    move(`/${job.job_id}`);
    await thole.background("job", "complete", "--job-id", job.job_id, "--summary", text);
  };
  const decide = async (choice: RegExp, outcome: string) => {
    await expect(held).toHaveCount(1, { timeout: 60_000 });
    await held.getByRole("button", { name: choice }).click();
    await expect(held).toHaveCount(0);
    await expect(panel.getByText(outcome, { exact: false })).toBeVisible();
  };

  await deliver("first result");
  await decide(/Stop tracking/, "closed by you, unconfirmed");
  await deliver("second result");
  await expect(held).toHaveCount(1, { timeout: 60_000 });
  await desk.accessible();
  await desk.shot("held", "Waiting for results");
  await decide(/It arrived/, "you confirmed that it arrived");

  // The home is back where it was: the result is sent when the person says so.
  await deliver("sim: say third result was read");
  await expect(held).toHaveCount(1, { timeout: 60_000 });
  move("");
  await held.getByRole("button", { name: /^Deliver thole/ }).click();
  await expect(held).toHaveCount(0);
  await expect(desk.said("third result was read")).toBeVisible({ timeout: 60_000 });
});

test("the result of a background job arrives in the chat", async ({ desk, thole }) => {
  await desk.ask("Wait for the build sim: say I will wait");
  await thole.background("job", "run", "--wait", "--thread-id", desk.sessionID, "--", "sh", "-c", "echo build is green");
  await expect(desk.chat.getByText(/build is green/).first()).toBeVisible({ timeout: 60_000 });
  await desk.tab("Jobs");
  const panel = desk.page.getByRole("tabpanel");
  await expect(panel.getByText("finished", { exact: true })).toBeVisible();
  await panel.getByRole("button", { name: /Delivery story/ }).click();
  await expect(panel.getByRole("listitem").getByRole("listitem").first()).toBeVisible();
  await desk.shot("jobs", "Waiting for the build");
});

test("a server that restarts in the middle of a turn loses nothing", async ({ desk, thole, expected }) => {
  expected.push(/ERR_|Failed to load resource|net::|50[0-9]/);
  await desk.send(slow);
  await expect(desk.said("one two three")).toBeVisible();
  await thole.stop("SIGKILL");
  await expect(desk.page.getByText("Connection lost. Reconnecting…")).toBeVisible();
  await thole.start();
  await expect(desk.page.getByText("Connection lost. Reconnecting…")).toHaveCount(0, { timeout: 30_000 });
  await desk.idle();
  await expect(desk.chat.getByText("Count sim:")).toHaveCount(1);
  await desk.ask("And now sim: say back again");
  await expect(desk.chat.locator("p", { hasText: /^back again$/ })).toBeVisible();
});
