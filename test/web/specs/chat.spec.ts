import { expect, test } from "../lab/test.ts";

test.beforeEach(async ({ desk }) => desk.newChat());

test("a new chat streams its answer and appears in the list", async ({ desk, page }) => {
  await desk.send("Talk about rowing sim: think First the boat.\\nThen the water. ;; slow 20ms 8 ;; say A thole is the pin that holds an oar. **It gives leverage.**");
  await expect(page).toHaveURL(/\/c\/[0-9a-f-]{36}$/);
  await expect(desk.stopButton).toBeVisible();
  await expect(desk.said("It gives leverage.")).toBeVisible();
  await desk.idle();
  await expect(desk.chat.locator("strong", { hasText: "It gives leverage." })).toBeVisible();
  await desk.chat.getByRole("button", { name: "Reasoning" }).click();
  await expect(desk.chat.locator("p", { hasText: "First the boat." })).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /Talk about rowing/ })).toBeVisible();
});

test("Shift+Enter makes a line, Enter sends, the field grows and shrinks", async ({ desk }) => {
  await desk.input.fill("one");
  const low = (await desk.input.boundingBox())!.height;
  await desk.input.press("Shift+Enter");
  await desk.input.pressSequentially("two");
  expect((await desk.input.boundingBox())!.height).toBeGreaterThan(low);
  await desk.input.press("Enter");
  await expect(desk.input).toHaveValue("");
  await expect(desk.chat.getByText("one two").first()).toBeVisible();
  expect((await desk.input.boundingBox())!.height).toBeCloseTo(low, 0);
  await desk.idle();
});

test("commands show their output, file changes their difference", async ({ desk }) => {
  await desk.page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
  await desk.ask("Do it sim: run printf 'alpha\\nbeta\\n' ;; run exit 3 ;; write notes.txt hello there ;; say all done");
  await expect(desk.chat.getByRole("button", { name: /printf.*exit 0/ })).toBeVisible();
  await expect(desk.chat.getByRole("button", { name: "exit 3 exit 3" })).toBeVisible();
  await desk.chat.getByRole("button", { name: /printf/ }).click();
  await expect(desk.chat.getByLabel("Output", { exact: true }).first()).toContainText("alpha");
  await expect(desk.chat.getByRole("button", { name: /notes\.txt/ })).toBeVisible();
  await expect(desk.chat.getByText("+hello there")).toBeVisible();
  await desk.shot("command-and-diff", "Run two commands and write a note");
});

test("an approval can be given and refused", async ({ desk }) => {
  await desk.send("Carefully sim: run echo allowed ;; run echo refused ;; say finished");
  const card = desk.chat.getByRole("region", { name: "May this command run?" });
  await expect(card.getByLabel("Command")).toContainText("echo allowed");
  await desk.shot("approval", "Be careful");
  await card.getByRole("button", { name: "Allow", exact: true }).click();
  await expect(card.getByLabel("Command")).toContainText("echo refused");
  await card.getByPlaceholder(/Say why/).fill("not today");
  await card.getByRole("button", { name: "Decline", exact: true }).click();
  await desk.idle();
  await expect(desk.chat.getByText("declined")).toBeVisible();
  await desk.tab("Ask");
  await expect(desk.page.getByRole("tabpanel").getByText("Answered before")).toBeVisible();
});

test("questions are answered by choice in the panel and by text in the chat", async ({ desk }) => {
  await desk.send("Colours sim: ask Which colour? | Green | Blue ;; say thanks");
  await desk.tab("Ask");
  const panel = desk.page.getByRole("tabpanel");
  await panel.getByText("Blue").click();
  await panel.getByRole("button", { name: "Answer", exact: true }).click();
  await desk.idle();
  await expect(desk.chat.getByText("Answered", { exact: true })).toBeVisible();
  await desk.send("Again sim: ask And why? | Because ;; say good");
  await desk.chat.getByPlaceholder("Your own answer").fill("it calms me");
  await desk.chat.getByRole("button", { name: "Answer", exact: true }).click();
  await desk.idle();
  await expect(desk.chat.getByText("it calms me")).toBeVisible();
});

test("todos are grouped, counted and replayed", async ({ desk }) => {
  await desk.ask("List sim: todo [~] first | second | third ;; todo [x] first | [~] second | third ;; todo [x] first | [x] second | [-] third ;; say listed");
  await desk.tab("Todo");
  const panel = desk.page.getByRole("tabpanel");
  await expect(panel.getByRole("heading", { name: /^Done/ })).toBeVisible();
  await expect(panel.getByText("Change 3 of 3")).toBeVisible();
  await panel.getByLabel("Replay").fill("1");
  await expect(panel.getByRole("heading", { name: /^Doing/ })).toBeVisible();
  await expect(panel.getByText("Change 1 of 3")).toBeVisible();
  await expect(desk.chat.getByText("Todo list: 2 of 3 done")).toBeVisible();
});

test("stop ends the run and retry starts another", async ({ desk }) => {
  await desk.send("Slowly sim: say this text is longer ;; wait 5m ;; say than anybody waits for");
  await expect(desk.stopButton).toBeVisible();
  await desk.stopButton.click(); // at once: also a run that has hardly begun is stopped
  await desk.idle();
  await expect(desk.chat.getByText("Stopped", { exact: true })).toBeVisible();
  await desk.chat.getByRole("button", { name: "Retry" }).click();
  await expect(desk.stopButton).toBeVisible();
  await expect(desk.chat.getByText("Slowly sim:")).toHaveCount(2);
  await desk.stopButton.click();
  await desk.idle();
});

test("a stop counts from the moment its button is there", async ({ desk, page }) => {
  let go = () => {};
  const stopped = new Promise<void>((done) => (go = done));
  await page.route("**/snapshot", async (route) => {
    await stopped; // the new chat is made, and its message is on its way
    await route.continue();
  });
  await desk.newChat();
  await desk.send("Too early sim: wait 5m ;; say never");
  await desk.stopButton.click();
  go();
  await expect(desk.chat.getByText("Stopped", { exact: true })).toBeVisible();
  await desk.idle();
});

test("a running agent is steered, and messages queue after it", async ({ desk }) => {
  await desk.send("Busy sim: wait 5m ;; say first answer");
  await expect(desk.stopButton).toBeVisible();
  const queue = desk.page.getByRole("region", { name: "Queued messages" });
  for (const text of ["queued one", "queued two", "queued three"]) {
    await desk.send(text);
    await expect(queue.getByText(text)).toBeVisible();
  }
  await queue.getByRole("listitem").filter({ hasText: "queued two" }).getByRole("button", { name: "Move up" }).click();
  await expect(queue.getByRole("listitem").first()).toContainText("queued two");
  await queue.getByRole("listitem").filter({ hasText: "queued three" }).getByRole("button", { name: "Remove" }).click();
  await queue.getByRole("listitem").filter({ hasText: "queued one" }).getByRole("button", { name: "Edit" }).click();
  await queue.getByRole("textbox").fill("queued one, edited");
  await queue.getByRole("button", { name: "Save" }).click();
  await expect(queue.getByText("queued one, edited")).toBeVisible();
  await desk.shot("queue", "Three things at once");
  await desk.input.fill("turn left");
  await desk.page.getByRole("button", { name: "Steer" }).click();
  await expect(desk.chat.getByText("Added while it was running")).toBeVisible();
  await expect(queue).toHaveCount(0, { timeout: 60_000 });
  await desk.idle();
  await expect(desk.chat.getByText("queued one, edited").first()).toBeVisible();
});

test("a failed run says why", async ({ desk }) => {
  await desk.ask("Break sim: fail rate_limit");
  await expect(desk.chat.getByText("Failed", { exact: true })).toBeVisible();
  await desk.tab("Agent");
  await expect(desk.page.getByRole("tabpanel").getByText("Last error")).toBeVisible();
});

test("a queued message is given to the running answer", async ({ desk }) => {
  await desk.send("Busy sim: wait 5m ;; say first answer");
  await expect(desk.stopButton).toBeVisible();
  await desk.send("sim: say took it in");
  const queue = desk.page.getByRole("region", { name: "Queued messages" });
  await queue.getByRole("button", { name: "Send to the running agent now" }).click();
  await expect(queue).toHaveCount(0);
  await expect(desk.chat.getByText("Added while it was running")).toBeVisible();
  await desk.idle();
  await expect(desk.said("took it in").last()).toBeVisible();
  await expect(desk.chat.locator("time")).toHaveCount(1); // one run
});

test("code is coloured by its language, and by nothing inline", async ({ desk }) => {
  await desk.ask("Code sim: say ```go\\n// row pulls\\nfunc row(n int) string { return \"pull\" }\\n```");
  await expect(desk.chat.locator(".code-keyword", { hasText: /^func$/ })).toBeVisible();
  await expect(desk.chat.locator(".code-comment", { hasText: "// row pulls" })).toBeVisible();
  await expect(desk.chat.locator(".code-string", { hasText: '"pull"' })).toBeVisible();
});
