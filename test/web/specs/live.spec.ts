import type { Browser, CDPSession } from "@playwright/test";
import { expect, test, type Desk } from "../lab/test.ts";

// What stands next to the chat goes on by itself: after reloads, after its worker ended, after the server came back.

test.beforeEach(async ({ desk }) => desk.newChat());

/** reload waits for the view that the page starts from, so that what happens next can only come as news. */
const reload = (desk: Desk) => Promise.all([desk.page.waitForResponse(/\/snapshot$/), desk.page.reload()]);

/** run is what another client starts. */
const run = async (desk: Desk, text: string) => {
  const status = await desk.page.evaluate(
    ([id, text]) => fetch(`/sessions/${id}/runs`, { method: "POST", headers: { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof")! }, body: JSON.stringify({ text }) }).then((it) => it.status),
    [desk.sessionID, text],
  );
  expect(status).toBe(201);
};

const todoOf = (desk: Desk, text: string) => desk.page.getByRole("tabpanel").getByText(text, { exact: true });

test("the panels go on after every reload", async ({ desk }) => {
  test.setTimeout(240_000);
  await desk.ask("Begin sim: say ready");
  await desk.tab("Todo");
  for (let n = 1; n <= 16; n++) {
    await reload(desk);
    await run(desk, `sim: todo [x] step ${n} ;; say done ${n}`);
    await expect(todoOf(desk, `step ${n}`), `after reload ${n}`).toBeVisible();
    await expect(desk.said(`done ${n}`).last()).toBeVisible();
    await desk.idle();
  }
  await desk.tab("Agent");
  await expect(desk.page.getByRole("tabpanel").getByText("Succeeded").first()).toBeVisible();
});

/** endWorker ends the shared worker of all tabs, as a crash of its process would. */
async function endWorker(browser: Browser): Promise<void> {
  const session: CDPSession = await browser.newBrowserCDPSession();
  const { targetInfos } = await session.send("Target.getTargets");
  const workers = targetInfos.filter((it) => it.type === "shared_worker");
  expect(workers).toHaveLength(1);
  await session.send("Target.closeTarget", { targetId: workers[0]!.targetId });
  await session.detach();
}

test("the panels go on when their worker ends", async ({ desk, browser }) => {
  await desk.ask("Begin sim: say ready");
  await desk.tab("Todo");
  for (const n of [1, 2, 3]) {
    await endWorker(browser).catch((error) => {
      if (n < 3) throw error; // after the second end the page does without a worker
    });
    await run(desk, `sim: todo [x] step ${n} ;; say done ${n}`);
    await expect(todoOf(desk, `step ${n}`)).toBeVisible();
    await desk.idle();
  }
});

test("the panels go on without shared workers, and when the server comes back", async ({ desk, thole, expected, context }) => {
  expected.push(/ERR_|Failed to load resource|net::|50[0-9]/);
  await desk.ask("Begin sim: say ready");
  const bare = await context.newPage();
  await bare.addInitScript(() => void delete (window as { SharedWorker?: unknown }).SharedWorker);
  await bare.goto(desk.page.url());
  await bare.getByRole("tab", { name: /^Todo/ }).click();
  await desk.tab("Todo");
  for (const n of [1, 2]) {
    if (n === 2) {
      await thole.stop("SIGKILL");
      await expect(desk.page.getByText("Connection lost. Reconnecting…")).toBeVisible();
      await thole.start();
      for (const page of [desk.page, bare]) await expect(page.getByText("Connection lost. Reconnecting…")).toHaveCount(0, { timeout: 30_000 });
    }
    await run(desk, `sim: todo [x] step ${n} ;; say done ${n}`);
    for (const page of [desk.page, bare]) await expect(page.getByRole("tabpanel").getByText(`step ${n}`, { exact: true })).toBeVisible();
    await desk.idle();
  }
  await bare.close();
});
