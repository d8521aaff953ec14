import { expect, test } from "../lab/test.ts";

// What the server refuses is said in the page's language: with a sentence of its own, or with what kind of refusal it is before the server's words.

test("refusals and failed runs are said in Chinese on a Chinese page", async ({ desk, page, browser, expected }) => {
  expected.push(/404|409|422/);
  await desk.newChat();
  await page.evaluate(() => localStorage.setItem("thole.prefs", JSON.stringify({ ...JSON.parse(localStorage.getItem("thole.prefs") ?? "{}"), language: "zh" })));
  await page.reload();
  const field = page.getByRole("textbox", { name: "消息", exact: true });
  await field.fill("No login sim: http 401 the key was refused");
  await field.press("Enter");
  const end = page.getByRole("main").getByRole("alert");
  await expect(end.getByText("模型服务拒绝了登录")).toBeVisible();
  await expect(end.getByText("服务器原文：the key was refused")).toBeVisible();
  await expect(end.getByText("请用代理自己的命令行重新登录，或检查 API 密钥")).toBeVisible();
  await desk.accessible();

  // A login link works once, in a browser that speaks Chinese.
  const link = desk.thole.loginLink();
  for (const works of [true, false]) {
    const context = await browser.newContext({ locale: "zh-CN", serviceWorkers: "block" });
    const other = await context.newPage();
    await other.goto(link);
    await expect(works ? other.getByRole("textbox", { name: "消息", exact: true }) : other.getByRole("heading", { name: "此链接已失效" })).toBeVisible();
    if (!works) await expect(other.getByText("链接只能使用一次，而且会过期。")).toBeVisible();
    await context.close();
  }

  // A source that is refused: nothing is at that place.
  await page.goto(`${desk.thole.base}/new`);
  await page.getByRole("button", { name: /^项目/ }).click();
  const dialog = page.getByRole("dialog", { name: "代理要处理什么？" });
  await dialog.getByText("本机文件夹").click();
  await dialog.getByLabel("文件夹", { exact: true }).fill("/nowhere/at/all");
  await dialog.getByLabel("文件夹", { exact: true }).press("Enter");
  await expect(dialog.getByText("没有目录 /nowhere/at/all")).toBeVisible();
});
