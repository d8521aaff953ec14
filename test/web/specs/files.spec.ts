import { devices } from "@playwright/test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "../lab/test.ts";

test("whether files are saved is seen, and why not; a button saves them", async ({ desk, page, thole }) => {
  await desk.newChat();
  await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
  await desk.ask("Keep this sim: write kept.txt one ;; say done");
  await desk.tab("Agent");
  const panel = page.getByRole("tabpanel");
  const saved = panel.getByText(/^Files saved \d+m? ?\d*s ago$/);
  await expect(saved).toBeVisible();
  // The store goes away: a file stands where its incoming directory was.
  const incoming = join(thole.home, "objects", "incoming");
  renameSync(incoming, `${incoming}-away`);
  writeFileSync(incoming, "");
  await desk.ask("Change it sim: write kept.txt two ;; say done");
  await expect(panel.getByText("Files are not saved", { exact: true })).toBeVisible();
  await expect(panel.getByText(/object store is away/).first()).toBeVisible();
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(panel.getByText("Files are not saved", { exact: true })).toBeVisible();
  await desk.accessible();
  await desk.fits();
  await desk.shot("files-unsaved", "Keep this");
  await page.emulateMedia({ colorScheme: "dark" });
  await desk.accessible();
  await page.emulateMedia({ colorScheme: "light" });
  rmSync(incoming);
  renameSync(`${incoming}-away`, incoming);
  await expect(async () => {
    await panel.getByRole("button", { name: "Save now" }).click({ timeout: 1000 });
    await expect(saved).toBeVisible({ timeout: 5000 });
  }).toPass();
  await page.setViewportSize(devices["Pixel 7"].viewport);
  await desk.fits();
});
