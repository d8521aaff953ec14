import type { Locator } from "@playwright/test";
import { begin, over } from "../lab/begin.ts";
import { Desk, expect, test } from "../lab/test.ts";

// Every page and panel, light and dark: no fault that axe knows, nothing wider than 320 px, and all of it by keyboard.

const pages = ["/new", "/inbox", "/settings", "/settings/tokens", "/settings/browsers", "/settings/agents", "/usage", "/connections", "/users"];

// Names, which are the same in every language, and what this test wrote itself.
const names = ["Claude Code", "Local user", "Language: English", "A chat with a rather long name that does not fit into a narrow page", "A chat with a rather long name that does not fit into a narr", "sim: ask Which way? | Left | Right ;; say done", "Which way?"];

/** english are the places of a page that show two or more English words in a row, but for names, code and what programs wrote. */
function english(names: string[]): string[] {
  const found: string[] = [];
  const judge = (text: string | null) => {
    const rest = [...names, navigator.userAgent].reduce((left, name) => left.replaceAll(name, ""), text ?? "");
    if (/[A-Za-z']{2,}[ ,:;.]+[A-Za-z']{2,}/.test(rest)) found.push(rest.trim());
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement!.closest("script, style, code, pre, kbd, samp, time, textarea")) judge(walk.currentNode.nodeValue);
  for (const name of ["aria-label", "aria-description", "title", "placeholder", "alt"]) for (const it of document.querySelectorAll(`[${name}]`)) judge(it.getAttribute(name));
  return found;
}

for (const [scheme, language] of [["light", "en"], ["dark", "zh"]] as const) {
  test(`pages are accessible and fit 320 px, ${scheme}, ${language}`, async ({ thole, browser }) => {
    test.setTimeout(300_000);
    const context = await browser.newContext({ colorScheme: scheme, locale: language === "zh" ? "zh-CN" : "en-US", serviceWorkers: "block" });
    const page = await context.newPage();
    await page.goto(thole.loginLink());
    await expect(page.getByRole("main")).toBeVisible();
    const desk = new Desk(page, thole);
    const id = await begin(page, "sim: ask Which way? | Left | Right ;; say done", "A chat with a rather long name that does not fit into a narrow page");
    for (const path of [...pages, `/c/${id}`]) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(thole.base + path);
      await expect(page.getByRole("main")).not.toBeEmpty();
      await desk.accessible();
      if (language === "zh") await expect.poll(() => page.evaluate(english, names)).toEqual([]);
      await page.setViewportSize({ width: 320, height: 640 });
      await desk.fits();
    }
    // What stands over a page, and every panel, in the page's language.
    await page.setViewportSize({ width: 1280, height: 800 });
    const spoken = async () => language === "zh" && (await expect.poll(() => page.evaluate(english, names)).toEqual([]));
    for (const tab of await page.getByRole("tab").all()) {
      await tab.click();
      await expect(tab).toHaveAttribute("aria-selected", "true");
      await spoken();
    }
    for (const open of ["Control+k", "?"]) {
      await desk.chat.click({ position: { x: 5, y: 5 } });
      await page.keyboard.press(open);
      await expect(page.getByRole("dialog")).toBeVisible();
      await spoken();
      await page.keyboard.press("Escape");
    }
    await page.getByRole("button", { name: language === "zh" ? "分享" : "Share", exact: true }).first().click();
    await expect(page.getByRole("dialog")).toBeVisible();
    await spoken();
    await page.keyboard.press("Escape");
    await page.goto(`${thole.base}/new`);
    await page.getByRole("button", { name: language === "zh" ? /^项目/ : /^Project:/ }).click();
    for (const kind of await page.getByRole("dialog").getByRole("radio").all()) {
      await kind.check({ force: true });
      await spoken();
    }
    await page.keyboard.press("Escape");
    await page.evaluate(async (id) => {
      const { items } = (await (await fetch(`/sessions/${id}/human-loop?state=pending`, { headers: { "thole-proof": localStorage.getItem("thole.proof")! } })).json()) as { items: { run_id: string }[] };
      await fetch(`/runs/${items[0]!.run_id}/cancel`, { method: "POST", headers: { "thole-proof": localStorage.getItem("thole.proof")! } });
    }, id);
    await over(page, id);
    await context.close();
  });
}

test("a token is made and revoked by keyboard alone, and shown once", async ({ desk, page, thole }) => {
  await page.goto(`${thole.base}/settings/tokens`);
  const form = page.getByRole("form", { name: "New token" });
  await form.getByLabel("Name, such as").focus();
  await page.keyboard.type("by keyboard");
  await form.getByRole("combobox", { name: "May" }).selectOption("read");
  await page.keyboard.press("Tab");
  await form.getByRole("button", { name: "Create token" }).press("Enter");
  const secret = page.getByText(/^thole_/);
  await expect(secret).toBeVisible();
  const token = await secret.innerText();
  expect((await page.request.get(`${thole.base}/sessions`, { headers: { authorization: `Bearer ${token}` } })).status()).toBe(200);
  await page.reload();
  await expect(page.getByText("by keyboard")).toBeVisible();
  await expect(secret).toHaveCount(0);
  await page.getByRole("button", { name: "Revoke by keyboard" }).press("Enter");
  const sure = page.getByRole("dialog", { name: "Revoke this token?" });
  await sure.getByRole("button", { name: "Revoke" }).press("Enter");
  await expect(page.getByText("by keyboard")).toHaveCount(0);
  expect((await page.request.get(`${thole.base}/sessions`, { headers: { authorization: `Bearer ${token}` } })).status()).toBe(401);
  await desk.accessible();
});

test("a question is answered, every panel looked at and the settings opened by keyboard alone", async ({ desk, page }) => {
  await desk.newChat();
  const focused = page.locator(":focus");
  /** reach presses Tab until something has the focus, as a person would. */
  const reach = async (name: string, target: Locator) => {
    for (let n = 0; n < 80; n++) {
      if (await target.evaluate((it) => it === document.activeElement)) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`${name} is not reached by Tab`);
  };
  await reach("the field", desk.input);
  await page.keyboard.type("By keyboard sim: todo [x] one | two ;; run echo pressed ;; say done");
  await page.keyboard.press("Enter");
  const allow = desk.chat.getByRole("button", { name: "Allow", exact: true });
  await expect(allow).toBeVisible();
  await reach("Allow", allow);
  expect(await focused.evaluate((it) => getComputedStyle(it).outlineStyle)).not.toBe("none");
  await page.keyboard.press("Enter");
  await expect(desk.said("done")).toBeVisible();
  const panel = page.getByRole("tabpanel");
  await reach("the panels", page.getByRole("tab", { selected: true }));
  const seen = new Set<string>();
  for (let n = await page.getByRole("tab").count(); n > 0; n--) {
    await expect(focused).toHaveRole("tab");
    await expect(focused).toHaveAttribute("aria-selected", "true");
    seen.add((await focused.getAttribute("id"))!);
    await page.keyboard.press("Tab");
    await expect(panel).toBeFocused(); // and scrolls by arrows
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("ArrowRight");
  }
  expect(seen.size).toBe(5);
  await reach("Settings", page.getByRole("link", { name: "Settings" }));
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/settings$/);
});
