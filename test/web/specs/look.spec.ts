import { Desk, expect, test } from "../lab/test.ts";

// THOLE_LOOK=DIR: pictures of every page for a person to look at, wide and on a phone, light in English and dark in Chinese.

const dir = process.env.THOLE_LOOK;
const rich =
  "Look at all of it sim: think Thinking about the oars ;; todo [x] Read the plan | [>] Row across | Rest ;; run printf '\\033[32mok\\033[0m 1\\n' ;; write notes.txt hello there ;; " +
  "say ## Notes\\n\\nA list:\\n\\n- one\\n- two\\n\\n| boat | oars |\\n|---|---|\\n| skiff | 2 |\\n\\n```go\\nfunc row() {}\\n```\\n\\n中文也在这里。";

for (const [scheme, language] of [["light", "en"], ["dark", "zh"]] as const) {
  test(`pictures, ${scheme}, ${language}`, async ({ thole, browser }) => {
    test.skip(!dir, "only with THOLE_LOOK=DIR");
    test.setTimeout(240_000);
    const context = await browser.newContext({ colorScheme: scheme, locale: language === "zh" ? "zh-CN" : "en-US", serviceWorkers: "block" });
    const page = await context.newPage();
    await page.goto(thole.loginLink());
    await expect(page.getByRole("main")).toBeVisible();
    const desk = new Desk(page, thole);
    const start = (text: string, name: string, execution_profile: string) =>
      page.evaluate(
        async ([text, name, execution_profile]) => {
          const headers = { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof")! };
          const post = async (path: string, body: unknown) => (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json() as Promise<{ id: string }>;
          const { id } = await post("/sessions", { provider: "test", name, execution_profile, source: { kind: "empty" } });
          await post(`/sessions/${id}/runs`, { text });
          return id;
        },
        [text, name, execution_profile] as const,
      );
    const full = await start(rich, "A rich answer", "full");
    const asking = await start("sim: run rm -r build ;; say done", "May it run this?", "ask");
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: width > 600 ? 800 : 844 });
      const shot = async (name: string) => {
        await page.waitForTimeout(300); // what moves has come to rest
        await page.screenshot({ path: `${dir}/${width}-${scheme}-${name}.png` });
      };
      for (const path of ["/new", `/c/${full}`, `/c/${asking}`, "/inbox", "/settings", "/settings/tokens", "/settings/browsers", "/settings/agents", "/usage", "/connections"]) {
        await page.goto(thole.base + path);
        await expect(page.getByRole("main")).not.toBeEmpty();
        await page.waitForLoadState("load");
        await page.waitForTimeout(700);
        await shot(path === `/c/${full}` ? "chat" : path === `/c/${asking}` ? "ask" : path.slice(1).replaceAll("/", "-"));
        await desk.fits();
      }
      if (width > 600) {
        await page.getByRole("searchbox").first().fill("oars");
        await expect(page.locator("mark").first()).toBeVisible();
        await shot("search");
        await page.keyboard.press("Control+k");
        await page.keyboard.type("oars");
        await expect(page.getByRole("listbox").locator("mark").first()).toBeVisible();
        await shot("palette");
        await page.keyboard.press("Escape");
      } else {
        await page.goto(`${thole.base}/c/${full}`);
        await page.locator("header button").first().click();
        await expect(page.getByRole("dialog")).toBeVisible();
        await shot("drawer");
      }
    }
    await context.close();
  });
}
