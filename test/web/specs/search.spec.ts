import { randomUUID } from "node:crypto";
import { expect, test } from "../lab/test.ts";

// A search finds the place, shows what stands around it, and leads there, however far up it is.
test("a hit in the list of chats shows its text and leads to the message", async ({ desk, page, thole }) => {
  const other = randomUUID();
  thole.cli("thread", "start", "--id", other, "--name", "Fish", "sim: say The <b>halibut</b> was the largest of them");
  for (let n = 0; n < 14; n++) thole.cli("thread", "send", other, `sim: say filler ${n} ${"and more ".repeat(40)}`);
  await desk.newChat();
  await page.getByRole("searchbox", { name: "Search chats" }).fill("HALIBUT");
  const hits = page.getByRole("region", { name: "Found in messages" });
  const answer = hits.getByRole("link", { name: /^Fish\s*The <b>halibut<\/b> was the largest/ });
  await expect(answer).toBeVisible();
  await expect(answer.locator("mark")).toHaveText("halibut");
  await desk.accessible();
  await answer.focus();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/c/${other}#m-`));
  await expect(desk.said("halibut")).toBeInViewport();

  // An answer to an earlier question is not shown for a later one.
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.route(/\/search\?query=filler&/, async (route) => {
    await held;
    await route.continue().catch(() => {});
  });
  const asked = page.waitForRequest(/\/search\?query=filler&/);
  await page.getByRole("searchbox", { name: "Search chats" }).fill("filler");
  await asked;
  await page.getByRole("searchbox", { name: "Search chats" }).fill("nothing like this");
  await expect(hits.getByText("Nothing found.")).toBeVisible();
  release();
  await expect(hits.getByRole("link")).toHaveCount(0);
});
