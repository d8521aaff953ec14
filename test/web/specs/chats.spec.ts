import { readFileSync } from "node:fs";
import { begin, over } from "../lab/begin.ts";
import { expect, test } from "../lab/test.ts";

// The list of chats: pinned, chosen several at a time, named and exported.

test("chats are pinned, and several are archived, restored and deleted at once", async ({ desk, page, thole, expected }) => {
  expected.push(/404.*\/files/); // what a slow page asked of a chat as it was deleted
  await page.goto(`${thole.base}/inbox`);
  const ids: string[] = [];
  for (const name of ["Oldest", "Second", "Third", "Newest"]) {
    ids.push(await begin(page, "sim: say hello", name));
    await over(page, ids.at(-1)!);
  }
  const list = page.getByRole("navigation", { name: "Chats" });
  const names = () => list.getByRole("link").evaluateAll((all) => all.map((it) => it.textContent!.match(/Oldest|Second|Third|Newest/)?.[0]).filter(Boolean));
  await expect.poll(names).toEqual(["Newest", "Third", "Second", "Oldest"]);
  await list.getByRole("button", { name: "Actions for Oldest" }).click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await expect.poll(names).toEqual(["Oldest", "Newest", "Third", "Second"]);
  await expect(list.getByRole("heading", { name: "Pinned" })).toBeVisible();
  await page.reload();
  await expect.poll(names).toEqual(["Oldest", "Newest", "Third", "Second"]);

  // With the keyboard: Space takes one, Shift and a click all up to another, Escape ends it.
  await page.getByRole("button", { name: "Select", exact: true }).press("Enter");
  const tools = page.getByRole("toolbar", { name: "Selected chats" });
  await expect(tools.getByText("0 selected")).toBeVisible();
  await desk.accessible();
  const box = (name: string) => list.getByRole("checkbox", { name: new RegExp(`^${name}`) });
  await box("Newest").press("Space");
  await box("Second").click({ modifiers: ["Shift"] });
  await expect(tools.getByText("3 selected")).toBeVisible();
  await box("Newest").press("Space");
  await expect(tools.getByText("2 selected")).toBeVisible();
  await desk.shot("chats-selected");
  await tools.getByRole("button", { name: "Archive" }).click();
  await expect.poll(names).toEqual(["Oldest", "Newest"]);
  await expect(tools).toHaveCount(0);

  await page.getByRole("button", { name: "Archived" }).click();
  await expect.poll(async () => (await names()).sort()).toEqual(["Second", "Third"]); // archived in one moment: neither is newer
  await page.getByRole("button", { name: "Select", exact: true }).click();
  await box("Second").press("Escape");
  await expect(tools).toHaveCount(0);
  await list.getByRole("button", { name: "Actions for Second" }).click();
  await page.getByRole("menuitem", { name: "Select" }).click();
  await tools.getByRole("button", { name: "Restore" }).click();
  await expect.poll(names).toEqual(["Third"]);
  await page.getByRole("button", { name: "Current" }).click();
  await expect.poll(async () => [(await names())[0], ...(await names()).slice(1).sort()]).toEqual(["Oldest", "Newest", "Second"]);

  // Deleting asks first; the chat that is open is left.
  await page.goto(`${thole.base}/c/${ids[3]}`);
  await page.getByRole("button", { name: "Select", exact: true }).click();
  await tools.getByRole("checkbox").check();
  await tools.getByRole("button", { name: "Delete" }).click();
  const sure = page.getByRole("dialog", { name: /^Delete \d+ chats\?$/ });
  await sure.getByRole("button", { name: "Cancel" }).click();
  await expect(tools).toBeVisible();
  await tools.getByRole("button", { name: "Delete" }).click();
  await sure.getByRole("button", { name: "Delete" }).click();
  await expect.poll(names).toEqual([]);
  await expect(page).toHaveURL(/\/new$/);
});

test("a chat names itself, live, until a person does, and is exported", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("Count the boats\\n\\nin the harbour sim: say four boats");
  const title = page.getByRole("heading", { level: 1 });
  await expect(title).toHaveText(/^Count the boats/);
  await expect(page).toHaveTitle(/^Count the boats.* · thole$/);
  await page.getByRole("banner").getByRole("button", { name: "Rename" }).click();
  const field = page.getByRole("banner").getByRole("textbox", { name: "Rename" });
  await field.fill("Not this");
  await field.press("Escape");
  await expect(title).toHaveText(/^Count the boats/);
  await title.dblclick();
  await field.fill("Harbour");
  await field.press("Enter");
  await expect(title).toHaveText("Harbour");
  const list = page.getByRole("navigation", { name: "Chats" });
  await expect(list.getByRole("link", { name: /^Harbour/ })).toBeVisible();
  await desk.ask("Something else entirely sim: say five");
  await expect(title).toHaveText("Harbour");
  await expect(list.getByRole("link", { name: /^Harbour/ })).toBeVisible();

  for (const [name, wanted] of [
    ["Export as Markdown", /# Harbour[\s\S]*four boats/],
    ["Export as JSON", /"thole\.transcript\/1"[\s\S]*four boats/],
  ] as const) {
    await list.getByRole("button", { name: "Actions for Harbour" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name }).click()]);
    expect(file.suggestedFilename()).toMatch(name.endsWith("JSON") ? /\.json$/ : /\.md$/);
    expect(readFileSync((await file.path())!, "utf8")).toMatch(wanted);
  }
});
