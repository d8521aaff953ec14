import { type Browser, expect, type Page } from "@playwright/test";

/** logInAs uses an invitation up in a browser of its own, and answers with the page that it leads to. */
export async function logInAs(browser: Browser, link: string, password: string): Promise<Page> {
  const context = await browser.newContext({ serviceWorkers: "block", locale: "en-US" });
  const page = await context.newPage();
  await page.goto(link);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
  return page;
}
