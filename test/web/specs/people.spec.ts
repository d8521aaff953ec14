import { expect, test } from "../lab/test.ts";
import { logInAs } from "../lab/people.ts";

// The page of a server's users. The user of the machine may manage them until a server is set up, so no PostgreSQL is needed here.

test("users are invited, put into departments, given roles, and shut out", async ({ desk, page, thole, browser, expected }) => {
  test.slow();
  expected.push(/4\d\d.*\/methods/); // the one refusal below
  await desk.newChat();
  await page.goto(`${thole.base}/users`);
  const users = page.getByRole("region", { name: "Users", exact: true });
  const invite = users.getByRole("form", { name: "Invite" });
  await invite.getByLabel("Login").fill("grace");
  await invite.getByLabel("Name (optional)").fill("Grace Hopper");
  await invite.getByRole("button", { name: "Invite" }).click();
  const grace = users.getByRole("listitem").filter({ hasText: "grace" });
  await expect(grace.getByText("invited")).toBeVisible();
  const link = await users.locator("code").innerText();
  expect(link).toMatch(/\/auth\/account#code=/);
  await desk.accessible();

  // A second invitation takes the place of the first, and lets her in once.
  await grace.getByRole("button", { name: "New invitation for grace" }).click();
  await expect(users.locator("code")).not.toHaveText(link);
  const again = await users.locator("code").innerText();
  const hers = await logInAs(browser, again, "correct horse battery");
  await page.reload();
  await expect(users.locator("code")).toHaveCount(0); // it was shown once
  await expect(grace.getByText("active")).toBeVisible();

  const departments = page.getByRole("region", { name: "Departments" });
  const add = departments.getByRole("form", { name: "Add department" });
  for (const [name, under] of [["research", "nothing"], ["compilers", "research"]] as const) {
    await add.getByLabel("Name of the department").fill(name);
    await add.getByRole("combobox", { name: "Part of" }).selectOption({ label: under });
    await add.getByRole("button", { name: "Add department" }).click();
    await expect(departments.getByRole("button", { name: `Remove the department ${name}` })).toBeVisible();
  }
  await expect(departments.getByText("part of research")).toBeVisible();
  await departments.getByRole("combobox", { name: "Add a member to compilers" }).selectOption("grace");
  const members = departments.getByRole("list", { name: "Members of compilers" });
  await expect(members.getByText("grace")).toBeVisible();

  // A department that others are part of stays, and the page says why.
  await departments.getByRole("button", { name: "Remove the department research" }).click();
  await expect(page.getByRole("status").getByText(/That did not work/)).toBeVisible();
  await expect(departments.getByText("part of research")).toBeVisible();

  const roles = page.getByRole("region", { name: "Roles" });
  const give = roles.getByRole("form", { name: "Give role" });
  await give.getByRole("combobox", { name: "To", exact: true }).selectOption({ label: "everyone in compilers" });
  await give.getByRole("combobox", { name: "On", exact: true }).selectOption({ label: "department" });
  await give.getByRole("combobox", { name: "Which", exact: true }).selectOption("research");
  await give.getByRole("button", { name: "Give role" }).click();
  const grant = roles.getByRole("listitem").filter({ hasText: "everyone in compilers" });
  await expect(grant.getByText("department research")).toBeVisible();
  await expect(grant.getByText("reads chats")).toBeVisible();
  await desk.accessible();
  await page.setViewportSize({ width: 320, height: 700 });
  await desk.fits();
  await page.setViewportSize({ width: 1280, height: 800 });
  await grant.getByRole("button", { name: "Take the role reads chats from compilers" }).click();
  await expect(grant).toHaveCount(0);
  await departments.getByRole("button", { name: "Take grace out of compilers" }).click();
  await expect(members.getByText("grace")).toHaveCount(0);

  // What she may not see, her page says; shut out, she is out at once.
  await hers.goto(`${thole.base}/users`);
  await expect(hers.getByRole("alert")).toBeVisible();
  await expect(hers.getByRole("form")).toHaveCount(0);
  await grace.getByRole("button", { name: "Disable grace" }).click();
  await page.getByRole("dialog", { name: "Disable grace" }).getByRole("button", { name: "Disable" }).click();
  await expect(grace.getByText("disabled")).toBeVisible();
  await expect(hers.getByRole("heading", { name: "Log in to thole" })).toBeVisible();
  await hers.context().close();
  await grace.getByRole("button", { name: "Enable grace" }).click();
  await expect(grace.getByText("active")).toBeVisible();
});
