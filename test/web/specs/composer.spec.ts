import { randomUUID } from "node:crypto";
import { Project } from "../lab/project.ts";
import { expect, test } from "../lab/test.ts";

// Keyboard only, but for the choice of what the agent may do.

const suggestions = (page: import("@playwright/test").Page, name: string) => page.getByRole("listbox", { name });

test("a slash offers commands and runs them", async ({ desk, page }) => {
  await desk.newChat();
  await desk.input.focus();
  await page.keyboard.type("/");
  const list = suggestions(page, "Commands");
  await expect(list.getByRole("option", { name: /^\/new/ })).toBeVisible();
  await desk.accessible();
  await page.keyboard.press("Escape");
  await expect(list).toBeHidden();
  await expect(desk.input).toHaveValue("/");
  await desk.input.fill("");
  await desk.ask("A chat to work with sim: say hello there");
  const own = desk.sessionID;

  await page.keyboard.type("/ren");
  const active = await desk.input.getAttribute("aria-activedescendant");
  expect(await page.evaluate((id) => document.getElementById(id!)?.textContent, active)).toContain("/rename");
  await page.keyboard.press("Tab");
  await expect(desk.input).toHaveValue("/rename ");
  await page.keyboard.type("A better name");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "A better name" })).toBeVisible();
  await expect(desk.input).toHaveValue("");

  await page.keyboard.type("/diff");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("tab", { name: "Changes" })).toHaveAttribute("aria-selected", "true");

  await page.keyboard.type("/stop");
  await page.keyboard.press("Enter");
  await expect(page.getByText("/stop: the agent is not running")).toBeVisible();
  await desk.input.fill("");

  // What only looks like a command is a message.
  await desk.ask("/etc/hosts is a path sim: say and was sent");
  await expect(desk.said("and was sent")).toBeVisible();

  await desk.input.focus();
  await page.keyboard.type("/compact");
  await page.keyboard.press("Enter");
  await expect(desk.chat.getByText("/compact", { exact: true })).toBeVisible();
  await desk.idle();

  await page.keyboard.type("/fork");
  await page.keyboard.press("Enter");
  await expect(page).not.toHaveURL(new RegExp(own));
  await expect(desk.said("hello there")).toBeVisible();
  await desk.input.focus();
  await page.keyboard.type("/new");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/new$/);
});

test("@ finds files of the workspace", async ({ desk, page }) => {
  await desk.newChat();
  await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
  await desk.ask("Files sim: run mkdir -p src && touch src/rowing.go 'src/two words.txt' && ln -s /etc out ;; say made");
  await desk.input.focus();
  await page.keyboard.type("look at @rowi");
  const list = suggestions(page, "Files");
  await expect(list.getByRole("option", { name: "src/rowing.go" })).toBeVisible();
  await desk.accessible();
  await page.keyboard.press("Enter");
  await expect(desk.input).toHaveValue("look at @src/rowing.go ");
  await page.keyboard.type("and @words");
  await expect(list.getByRole("option", { name: "src/two words.txt" })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(desk.input).toHaveValue('look at @src/rowing.go and @"src/two words.txt" ');
  const none = page.waitForResponse(/files\/search\?q=passwd/);
  await page.keyboard.type("@passwd");
  expect(((await (await none).json()) as { items: unknown[] }).items).toEqual([]);
  await expect(list).toBeHidden();
});

test("@ finds files before a chat has begun: of a branch those of the commit, in place those that are there", async ({ desk, page, thole }) => {
  const project = new Project(thole);
  project.write("rowing.txt", "not committed\n");
  await desk.newChat();
  await desk.work(project.dir);
  const list = suggestions(page, "Files");
  await desk.input.focus();
  await page.keyboard.type("look at @li");
  await expect(list.getByRole("option")).toHaveText(["list.txt"]);
  await page.keyboard.press("Enter");
  await expect(desk.input).toHaveValue("look at @list.txt ");
  const none = page.waitForResponse(/sources\/files\?.*q=rowing/);
  await page.keyboard.type("@rowing");
  expect(((await (await none).json()) as { items: unknown[] }).items).toEqual([]);
  await expect(list).toBeHidden();
  await page.keyboard.press("Escape");
  await desk.input.fill("");
  await desk.source.click();
  const dialog = page.getByRole("dialog", { name: "What should the agent work on?" });
  await dialog.getByText("Folder of this machine").click();
  await dialog.getByLabel("Folder", { exact: true }).fill(project.dir);
  await dialog.getByRole("button", { name: "Open", exact: true }).click();
  await dialog.getByLabel(/^In the directory itself/).click();
  await dialog.getByRole("button", { name: "Use this" }).click();
  await desk.input.focus();
  await page.keyboard.type("@row");
  await expect(list.getByRole("option")).toHaveText(["rowing.txt"]);
  await page.keyboard.press("Tab");
  await expect(desk.input).toHaveValue("@rowing.txt ");
});

test("a chat is searched, in parts that are folded too, and a link leads to a message far up", async ({ desk, page, thole }) => {
  const id = randomUUID();
  test.setTimeout(180_000);
  const filler = Array.from({ length: 30 }, (_, n) => `Paragraph ${n} about nothing.`).join("\\n\\n");
  await thole.background("thread", "start", "--id", id, "--profile", "full", "sim: say the **very first** answer");
  await thole.background("thread", "send", id, "sim: run printf 'alpha\\nhaddock\\n' ;; say after the command");
  for (let n = 0; n < 12; n++) await thole.background("thread", "send", id, `Number ${n} sim: say ${filler}`);
  await page.goto(`${thole.base}/c/${id}`);
  await expect(desk.said("Paragraph 29").last()).toBeVisible();

  await page.keyboard.press("Control+f");
  const field = page.getByRole("textbox", { name: "Search in this chat" });
  await expect(field).toBeFocused();
  await page.keyboard.type("haddock");
  // Far up, where it was not read yet: in the message, in the command, and in the output, which is folded. The nearest is first.
  await expect(page.getByRole("search").getByText("3 of 3")).toBeVisible();
  await desk.accessible();
  const marked = () =>
    page.evaluate(() => {
      const range = [...(CSS.highlights.get("found-now") ?? [])][0] as Range | undefined;
      const box = range?.getBoundingClientRect();
      const list = document.querySelector("[data-row]")!.closest("[role=region]")!.getBoundingClientRect();
      return box ? { text: range!.toString(), parent: range!.startContainer.parentElement!.getAttribute("aria-label"), seen: box.top >= list.top && box.bottom <= list.bottom } : undefined;
    });
  await expect.poll(marked).toEqual({ text: "haddock", parent: "Output", seen: true });
  await page.keyboard.press("Enter"); // around
  await expect(page.getByRole("search").getByText("1 of 3")).toBeVisible();
  await expect.poll(marked).toMatchObject({ text: "haddock", seen: true });
  await page.keyboard.press("Enter");
  await expect(page.getByRole("search").getByText("2 of 3")).toBeVisible();
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.press("Shift+Enter");
  await expect(page.getByRole("search").getByText("3 of 3")).toBeVisible();
  await field.fill("very first answer"); // over the bold words
  await expect.poll(marked).toMatchObject({ text: "very first answer", seen: true });
  await field.fill("no such word");
  await expect(page.getByRole("search").getByText("Nothing found.")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("search")).toHaveCount(0);
  expect(await page.evaluate(() => CSS.highlights.size)).toBe(0);

  // The link of the first answer, opened again.
  const list = page.getByRole("region", { name: "Chat", exact: true });
  await list.evaluate((it) => (it.scrollTop = 0));
  await expect(desk.said("very first")).toBeVisible();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await desk.chat.getByRole("button", { name: "Copy a link to this message" }).nth(1).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByText("The link is on the clipboard.")).toBeVisible();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link).toMatch(new RegExp(`/c/${id}#m-`));
  await page.goto(`${thole.base}/new`);
  await page.goto(link);
  await expect(desk.said("very first")).toBeInViewport();
  await expect(page.locator("[data-marked]").filter({ hasText: "very first" })).toBeVisible();
  await desk.accessible();
  await page.goto(`${thole.base}/new`);
  await page.goto(`${thole.base}/c/${id}#m-${randomUUID()}`);
  await expect(page.getByText("is not in this chat")).toBeVisible();
});

for (const scheme of ["light", "dark"] as const)
  test(`formulas and diagrams are drawn, prices are not, and nothing is loaded from elsewhere, ${scheme}`, async ({ desk, page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    const faults: string[] = [];
    await page.exposeFunction("fault", (text: string) => faults.push(text));
    await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (it) => void (window as never as { fault: (text: string) => void }).fault(`${it.violatedDirective} ${it.blockedURI} ${it.sourceFile}`)));
    await desk.newChat({ load: true });
    const answer = [
      "Prices: $5 and $10, not a formula.",
      "Inline $E = mc^2$ and \\(a_1\\).",
      "$$\\n\\frac{1}{2} + \\sqrt{x}\\n$$",
      "Bad: $\\href{javascript:alert(1)}{x}$ and $\\frac{$.",
      "```mermaid\\ngraph TD\\n  A[Begin] --> B{Choose}\\n  B --> C[End]\\n```",
      "```mermaid\\nthis is not a diagram\\n```",
      "```mermaid\\n%%{init: {'securityLevel': 'loose', 'htmlLabels': true}}%%\\ngraph TD\\n  X[\"<img src=x onerror=alert(1)>\"] --> Y\\n  click X href \"javascript:alert(1)\"\\n```",
    ];
    await desk.ask(`Show it sim: say ${answer.join("\\n\\n")}`);
    await expect(desk.chat.locator(".katex")).toHaveCount(4); // a link is only its words
    await expect(desk.chat.locator(".katex-display")).toHaveCount(1);
    await expect(desk.said("Prices: $5 and $10, not a formula.")).toBeVisible();
    expect(await page.evaluate(() => document.fonts.ready.then(() => [...document.fonts].some((it) => it.family.startsWith("KaTeX") && it.status === "loaded")))).toBe(true);
    const pictures = desk.chat.getByRole("img", { name: "Diagram drawn from the text of this block" });
    await expect(pictures).toHaveCount(1);
    for (const picture of await pictures.all()) expect(await picture.evaluate((it: HTMLImageElement) => it.decode().then(() => it.naturalWidth))).toBeGreaterThan(40);
    const sources = await pictures.evaluateAll((all) => all.map((it) => decodeURIComponent(it.getAttribute("src")!)));
    for (const source of sources) expect(source).not.toMatch(/javascript:|<img|foreignObject|<script/i);
    expect(sources[0]).toContain("Begin");
    for (const text of ["this is not a diagram", "onerror=alert(1)"]) await expect(desk.chat.locator("pre", { hasText: text })).toBeVisible();
    await expect(desk.chat.locator("a[href^=javascript]")).toHaveCount(0);
    await desk.accessible();
    await desk.fits();
    await page.setViewportSize({ width: 320, height: 700 });
    await desk.fits();
    expect(faults.filter((it) => !/eval .*\/index-/.test(it))).toEqual([]); // the page's own zod tries once whether it may make functions
  });

test("all of a long output is shown, searched and downloaded", async ({ desk, page }) => {
  await desk.newChat();
  await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
  await desk.ask("Count sim: run seq 1 15000 ;; say counted");
  await desk.chat.getByRole("button", { name: /seq 1 15000/ }).focus();
  await page.keyboard.press("Enter");
  await desk.chat.getByRole("button", { name: "Show all" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Whole output" });
  await expect(dialog.getByLabel("Whole output")).toContainText("7500\n7501\n7502");
  await expect(dialog.getByRole("textbox", { name: "Search in the output" })).toBeFocused();
  await page.keyboard.type("2345");
  await expect(dialog.getByText("1 of 2")).toBeVisible();
  await page.keyboard.press("Shift+Enter");
  await expect(dialog.getByText("2 of 2")).toBeVisible();
  await desk.accessible();
  await page.setViewportSize({ width: 320, height: 700 });
  await desk.fits();
  const saved = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download" }).focus();
  await page.keyboard.press("Enter");
  expect((await saved).suggestedFilename()).toBe("output.txt");
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
});
