import { Desk, expect, test } from "../lab/test.ts";

// A chat is read in a browser that has nothing but its link.

test("a chat is shared by a link, read live without a login, and no longer when it is revoked", async ({ desk, page, thole, browser }) => {
  await desk.newChat();
  await desk.ask("Row sim: say the first answer");
  await page.getByRole("banner").getByRole("button", { name: "Share", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Share this chat" });
  await expect(dialog.getByText("No links. Nobody else can read this chat.")).toBeVisible();
  await dialog.getByRole("combobox", { name: "The link works for" }).selectOption("1 hour");
  await dialog.getByRole("button", { name: "Create a link" }).click();
  const link = await dialog.getByRole("status").locator("code").innerText();
  expect(link.startsWith(`${thole.base}/share#`)).toBe(true);
  await expect(dialog.getByRole("listitem")).toContainText("never used");
  await desk.accessible();
  await dialog.getByRole("button", { name: "Close" }).click();

  const context = await browser.newContext({ locale: "en-US" });
  const guest = await context.newPage();
  const [asked, noise]: [string[], string[]] = [[], []];
  guest.on("request", (request) => asked.push(request.url().replace(thole.base, "")));
  guest.on("pageerror", (error) => noise.push(error.message));
  await guest.goto(link);
  const reader = new Desk(guest, thole);
  await expect(reader.said("the first answer")).toBeVisible();
  await expect(guest.getByRole("heading", { name: /^Row/ })).toBeVisible();
  await expect(guest.getByRole("banner").getByText("test", { exact: false }).first()).toBeVisible();

  // What is written now arrives, also before it is whole; a question is shown without the ways to answer it.
  await desk.send("More sim: say half of it ;; run echo asked-for ;; say the second answer");
  await expect(reader.said("half of it")).toBeVisible();
  await expect(guest.getByText("Waits for an answer.")).toBeVisible();
  await expect(guest.getByText("echo asked-for").last()).toBeVisible();
  for (const name of ["Allow", "Deny", "Stop", "Send", "Settings", "Share", "Rename"]) await expect(guest.getByRole("button", { name, exact: true })).toHaveCount(0);
  await reader.accessible();
  await desk.chat.getByRole("button", { name: "Allow", exact: true }).click();
  await expect(reader.said("the second answer")).toBeVisible();
  await expect(guest.getByRole("textbox")).toHaveCount(0);
  await expect(guest.getByRole("navigation")).toHaveCount(0);
  await guest.setViewportSize({ width: 320, height: 640 });
  await reader.fits();

  // The menu of the chat opens the dialog, too. A revoked link says so where it is open, and after a reload.
  await page.getByRole("navigation").getByRole("button", { name: /^Actions for Row/ }).click();
  await page.getByRole("menuitem", { name: "Share" }).click();
  await expect(dialog.getByRole("listitem")).toContainText("last used");
  await dialog.getByRole("button", { name: /^Revoke the link/ }).click();
  await expect(dialog.getByText("No links. Nobody else can read this chat.")).toBeVisible();
  await expect(guest.getByText("This link does not work any longer")).toBeVisible();
  await expect(guest.getByText("the second answer")).toHaveCount(0);
  await guest.reload();
  await expect(guest.getByText("This link does not work any longer")).toBeVisible();
  const token = link.split("#")[1]!;
  expect(asked.filter((it) => it.startsWith("/shared/events")).length).toBeGreaterThan(0);
  expect(asked.filter((it) => !/^\/(share(#.*)?$|shared($|\/)|assets\/|[\w.-]+\.(svg|png|ico|webmanifest|json)$)/.test(it))).toEqual([]);
  expect(asked.filter((it) => it.includes(token) && !it.startsWith("/share#"))).toEqual([]);
  expect(noise).toEqual([]);
  await context.close();
});

test("a login that may not share sees why", async ({ thole, browser, desk }) => {
  await desk.newChat();
  await desk.ask("Mine sim: say mine");
  const context = await browser.newContext({ locale: "en-US" });
  const page = await context.newPage();
  await page.goto(`${thole.base}/c/${desk.sessionID}`);
  await page.getByLabel("API token").fill(thole.cli("token", "create", "--scope", "act", "weak").trim());
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("banner").getByRole("button", { name: "Share", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Share this chat" });
  await expect(dialog.getByText(/log in with a login link/)).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Create a link" })).toHaveCount(0);
  await context.close();
});
