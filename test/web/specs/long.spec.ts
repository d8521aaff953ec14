import { randomUUID } from "node:crypto";
import { expect, test } from "../lab/test.ts";

const [runs, each] = [40, 250];

test("a thread of 10,000 items is read in pages and drawn in pieces", async ({ desk, page, thole }) => {
  test.setTimeout(600_000);
  const id = randomUUID();
  await thole.background("thread", "start", "--id", id, "sim: say the very first");
  for (let run = 1; run <= runs; run++) await thole.background("thread", "send", id, `sim: say run ${run} begins${Array.from({ length: each - 1 }, (_, n) => ` ;; say item ${n + 1} of run ${run}`).join("")}`);

  await page.goto(`${thole.base}/c/${id}`);
  await expect(desk.said(`item ${each - 1} of run ${runs}`).last()).toBeVisible();
  const list = page.getByRole("region", { name: "Chat", exact: true });
  const drawn = () => page.evaluate(() => document.querySelectorAll("main *").length);
  expect(await drawn()).toBeLessThan(2000);

  // From the newest to the first: jumps like those of a reader with a mouse.
  let most = 0;
  await expect(async () => {
    await list.evaluate((it) => (it.scrollTop = Math.max(0, it.scrollTop - it.clientHeight * 40)));
    most = Math.max(most, await drawn());
    await expect(desk.said("the very first").last()).toBeInViewport({ timeout: 100 });
  }).toPass({ timeout: 300_000, intervals: [20] });
  expect(most).toBeLessThan(2000);

  // The page still answers to its user.
  await page.getByRole("button", { name: "Jump to the newest" }).click();
  await desk.ask("sim: say and on it goes");
  await expect(desk.said("and on it goes").last()).toBeInViewport();
});
