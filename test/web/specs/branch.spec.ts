import { expect, test } from "../lab/test.ts";

test("a message is edited, answered again and gone on from in chats of their own", async ({ desk, page }) => {
  await desk.newChat();
  await desk.ask("One sim: say first answer");
  await desk.ask("Two sim: say second answer");
  const origin = page.url();
  const apart = async () => {
    await expect(page).not.toHaveURL(origin);
    await expect(page).toHaveURL(/\/c\//);
    await desk.idle();
  };
  await desk.chat.getByText("Two sim: say second answer").hover();
  await desk.chat.getByRole("button", { name: "Edit in a new chat" }).last().click();
  const field = desk.chat.getByRole("textbox", { name: "Edit in a new chat" });
  await expect(field).toHaveValue("Two sim: say second answer");
  await field.fill("Two sim: say another answer");
  await field.press("Enter");
  await apart();
  await expect(desk.said("another answer")).toBeVisible();
  await expect(desk.said("first answer")).toBeVisible();
  await expect(desk.said("second answer")).toHaveCount(0);

  await page.goto(origin);
  await expect(desk.said("second answer")).toBeVisible();
  await expect(desk.said("another answer")).toHaveCount(0);
  await desk.chat.getByRole("button", { name: "Answer again in a new chat" }).last().click();
  await apart();
  await expect(desk.said("second answer")).toHaveCount(1);

  await page.goto(origin);
  await desk.chat.getByRole("button", { name: "Continue from here in a new chat" }).first().click();
  await apart();
  await expect(desk.said("first answer")).toBeVisible();
  await expect(desk.said("second answer")).toHaveCount(0);
});
