import { expect, test } from "../lab/test.ts";

// What a page reads at its start (its events come through a worker, which routes do not see) may arrive in any order: every pair of answers the other way round gives the same page.
const reads = {
  providers: /\/providers$/,
  sessions: /\/sessions\?/,
  snapshot: /\/snapshot$/,
  messages: /\/messages\?/,
  runs: /\/runs\?/,
  questions: /\/human-loop\?/,
  todos: /\/todos\/events/,
  phases: /\/phases$/,
};
const names = Object.keys(reads) as (keyof typeof reads)[];

test("start-up messages in the other order make the same page", async ({ desk, page }) => {
  test.slow();
  await desk.newChat();
  await desk.ask("All of it sim: todo [x] one | two ;; say done");
  await desk.tab("Agent");
  const seen = async () => {
    const main = (await desk.chat.innerText()).replace(/\s*\n\s*/g, "\n"); // its lines; their distance changes when the file that draws Markdown comes
    const panel = await page.getByRole("tabpanel").getByRole("listitem").allInnerTexts();
    return [main, panel.join("\n"), await page.getByRole("navigation", { name: "Chats" }).getByRole("link").count(), await page.getByRole("radio", { checked: true }).count()];
  };
  await page.reload();
  await expect(desk.said("done")).toBeVisible();
  await expect(page.getByRole("tabpanel").getByRole("listitem").filter({ hasText: "Exported" }).first()).toBeVisible(); // the run ends before its files are saved
  let wanted = await seen();
  await expect.poll(async () => JSON.stringify(wanted) === JSON.stringify((wanted = await seen()))).toBe(true);

  for (const [at, first] of names.entries())
    for (const second of names.slice(at + 1)) {
      // The first is held until the second was answered. A second that waits for the first is not held up by it.
      let answered = () => {};
      const other = new Promise<void>((done) => (answered = done));
      const late = (it: { url(): string }) => reads[second].test(it.url()) && answered();
      page.on("requestfinished", late);
      await page.route(reads[first], async (route) => {
        await Promise.race([other, page.waitForTimeout(400)]);
        await route.continue().catch(() => {});
      });
      await page.reload();
      await expect.poll(seen, { message: `${second} before ${first}` }).toEqual(wanted);
      page.off("requestfinished", late);
      await page.unroute(reads[first]);
    }
});
