import { devices } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Project } from "../lab/project.ts";
import { type Desk, expect, test } from "../lab/test.ts";

// A chat works on a project of the user's, and what it changed comes back.

// A folder that is in no repository is looked at too, and the answer says so.
test.beforeEach(({ expected }) => void expected.push(/\/sources\/inspect/));

const dialog = (desk: Desk) => desk.page.getByRole("dialog", { name: "What should the agent work on?" });
const panel = (desk: Desk) => desk.page.getByRole("tabpanel");
const fileIn = (desk: Desk, name: string) => panel(desk).getByRole("region", { name, exact: true });

/** open goes to a folder in the picker. */
async function open(desk: Desk, dir: string): Promise<void> {
  await desk.source.click();
  await dialog(desk).getByText("Folder of this machine").click();
  await dialog(desk).getByLabel("Folder", { exact: true }).fill(dir);
  await dialog(desk).getByRole("button", { name: "Open", exact: true }).click();
}

/** choose takes a branch of a repository. */
async function choose(desk: Desk, dir: string): Promise<void> {
  await open(desk, dir);
  await expect(dialog(desk).getByLabel(/^On a branch of its own/)).toBeChecked();
  await dialog(desk).getByRole("button", { name: "Use this" }).click();
}

async function begin(desk: Desk): Promise<void> {
  await desk.newChat();
  await desk.page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
}

/** rows are the lines of a shown file, as a patch has them. */
const rows = (desk: Desk, name: string) =>
  fileIn(desk, name)
    .locator("[data-row]")
    .evaluateAll((all) => all.map((it) => ({ same: " ", added: "+", removed: "-", note: "\\" })[(it as HTMLElement).dataset.row!]! + it.querySelector("[data-text]")!.textContent));

/** patchOf are the lines of git's own difference between the repository and a copy in which the same was done. */
function patchOf(project: Project, name: string, change: (dir: string) => void): string[] {
  const copy = mkdtempSync(join(tmpdir(), "thole-copy-"));
  execFileSync("git", ["clone", "-q", project.dir, copy]);
  change(copy);
  execFileSync("git", ["-C", copy, "add", "-A"]);
  const lines = execFileSync("git", ["-C", copy, "diff", "--cached", "--", name], { encoding: "utf8" }).replace(/\n$/, "").split("\n");
  return lines.slice(lines.findIndex((it) => it.startsWith("@@"))).filter((it) => !it.startsWith("@@"));
}

const edit = (dir: string) => writeFileSync(join(dir, "list.txt"), readFileSync(join(dir, "list.txt"), "utf8").replace("line 7\n", "line seven\n").replace("line 20\n", ""));
const script = `sim: run sed -i -e 's/^line 7$/line seven/' -e '/^line 20$/d' list.txt && rm old.txt && printf 'new\\n' > new.txt`;

test("from a folder to a change in it: pick, run, look, comment, apply, undo", async ({ desk, page, thole }) => {
  test.setTimeout(240_000);
  const project = new Project(thole);
  project.write("note.txt", "not committed\n");
  await begin(desk);
  await open(desk, thole.root);
  await expect(dialog(desk).getByRole("button", { name: `${project.dir.split("/").at(-1)} git` })).toBeVisible();
  await dialog(desk).getByRole("button", { name: `${project.dir.split("/").at(-1)} git` }).click();
  await expect(dialog(desk).getByText("with uncommitted changes (0 changed, 1 new)")).toBeVisible();
  await desk.accessible();
  await desk.shot("sources");
  await dialog(desk).getByRole("button", { name: "Use this" }).click();
  await expect(desk.source).toContainText(project.dir.split("/").at(-1)!);
  await expect(page.getByText("Explain this project")).toBeVisible();

  // The panel is open before the run ends, and follows by itself.
  await desk.tab("Changes");
  await desk.ask(`Change the list ${script} ;; say done`);
  await expect(page.getByRole("banner").getByText(/project-\d+ · thole\//)).toBeVisible();
  await expect(panel(desk).getByText("3 files")).toBeVisible();
  expect(await rows(desk, "list.txt")).toEqual(patchOf(project, "list.txt", edit));
  expect(await rows(desk, "new.txt")).toEqual(["+new"]);
  expect(await rows(desk, "old.txt")).toEqual(["-to be removed"]);
  await expect(fileIn(desk, "note.txt")).toHaveCount(0);

  // Comments on a line and on a range outlive a reload and become one message.
  await fileIn(desk, "new.txt").getByRole("button", { name: "Comment on line 1" }).click();
  await fileIn(desk, "new.txt").getByLabel("Comment", { exact: true }).fill("sim: run echo better > new.txt ;; say better");
  const numbers = fileIn(desk, "list.txt").locator("button[data-side=now]");
  await numbers.nth(0).focus();
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Enter");
  await fileIn(desk, "list.txt").getByLabel("Comment", { exact: true }).fill("Why these two?");
  await desk.accessible();
  await desk.shot("changes", "Tidy the list");
  await page.reload();
  await expect(panel(desk).getByText("2 comments")).toBeVisible();
  await panel(desk).getByRole("button", { name: "Put into the message" }).click();
  await expect(desk.input).toHaveValue("new.txt:1\n> new\n\nsim: run echo better > new.txt ;; say better\n\nlist.txt:4-5\n> line 4\n> line 5\n\nWhy these two?");
  await desk.input.press("Enter");
  await expect(desk.said("better").last()).toBeVisible();
  await desk.idle();
  await expect.poll(() => rows(desk, "new.txt")).toEqual(["+better"]);

  // One run alone.
  await panel(desk).getByLabel("Which changes").selectOption({ label: "Run 2" });
  await expect.poll(() => rows(desk, "new.txt")).toEqual(["-new", "+better"]);
  await expect(fileIn(desk, "list.txt")).toHaveCount(0);
  await panel(desk).getByLabel("Which changes").selectOption({ label: "All runs" });

  // Something in the way is listed, and nothing is written.
  project.write("list.txt", "something else\n");
  await panel(desk).getByRole("button", { name: "Apply" }).click();
  await expect(panel(desk).getByText("these files are in the way")).toBeVisible();
  await expect(panel(desk).getByRole("status").getByText("list.txt")).toBeVisible();
  expect(existsSync(join(project.dir, "new.txt"))).toBe(false);
  project.git("checkout", "-q", "list.txt");

  await panel(desk).getByRole("button", { name: "Apply" }).click();
  const sure = page.getByRole("dialog", { name: "Are you sure?" });
  await expect(sure.getByText("list.txt")).toBeVisible();
  expect(existsSync(join(project.dir, "new.txt"))).toBe(false);
  await sure.getByRole("button", { name: "Apply" }).click();
  await expect(panel(desk).getByText("3 files changed in")).toBeVisible();
  expect(readFileSync(join(project.dir, "new.txt"), "utf8")).toBe("better\n");
  expect(readFileSync(join(project.dir, "list.txt"), "utf8")).toContain("line seven\n");
  expect(existsSync(join(project.dir, "old.txt"))).toBe(false);
  expect(readFileSync(join(project.dir, "note.txt"), "utf8")).toBe("not committed\n");

  // The branch too, then the last run is taken back.
  await panel(desk).getByRole("button", { name: "Pull", exact: true }).click();
  await sure.getByRole("button", { name: "Pull" }).click();
  await expect(panel(desk).getByText(/has the branch thole\/\S+ now/)).toBeVisible();
  const branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/thole").trim();
  expect(project.git("show", `${branch}:new.txt`)).toBe("better\n");
  await panel(desk).getByRole("button", { name: "Undo run 2" }).click();
  await sure.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => rows(desk, "new.txt"), { timeout: 30_000 }).toEqual(["+new"]);

  // The next chat has the same project; one that is opened later shows its changes at once.
  await desk.newChat();
  await expect(desk.source).toContainText(project.dir.split("/").at(-1)!);
});

test("side by side is remembered, and odd files are shown for what they are", async ({ desk, page, thole }) => {
  const project = new Project(thole);
  await begin(desk);
  await choose(desk, project.dir);
  await desk.ask(`Odd files sim: run printf '\\0\\1' > data.bin; chmod +x list.txt; ln -s list.txt link; git mv old.txt moved.txt; printf x > "$(printf 'a\\nb.txt')"; seq 900 > long.txt ;; say done`);
  await desk.tab("Changes");
  await expect(fileIn(desk, "data.bin").getByText("binary")).toBeVisible();
  await expect(fileIn(desk, "list.txt").getByText("100644 → 100755")).toBeVisible();
  await expect(fileIn(desk, "link").getByText("link", { exact: true }).last()).toBeVisible();
  await expect(fileIn(desk, "moved.txt").getByText("old.txt →")).toBeVisible();
  await expect(fileIn(desk, '"a\\nb.txt"')).toBeVisible();
  const long = fileIn(desk, "long.txt").getByRole("button", { name: /long\.txt/ });
  await expect(long).toHaveAttribute("aria-expanded", "false");
  await long.click();
  expect(await rows(desk, "long.txt")).toHaveLength(900);
  await long.click();
  await panel(desk).getByRole("button", { name: "Side by side" }).click();
  await page.reload();
  await expect(panel(desk).getByRole("button", { name: "Inline" })).toBeVisible();
  const [patch] = await Promise.all([page.waitForEvent("download"), panel(desk).getByRole("button", { name: "Download patch" }).click()]);
  writeFileSync(join(thole.root, "got.patch"), readFileSync(await patch.path()));
  project.git("apply", "--index", join(thole.root, "got.patch"));
  expect(readFileSync(join(project.dir, "a\nb.txt"), "utf8")).toBe("x");
  await desk.accessible();
});

test("the directory itself is a choice of its own, and its changes are there at once", async ({ desk, page, thole }) => {
  const project = new Project(thole);
  await begin(desk);
  await open(desk, project.dir);
  await dialog(desk).getByLabel(/^In the directory itself/).check();
  await expect(dialog(desk).getByText(`The agent changes the files in ${project.dir} as it works`)).toBeVisible();
  await desk.accessible();
  await dialog(desk).getByRole("button", { name: "Use this" }).click();
  await expect(desk.source).toContainText("in place");
  await desk.ask("Here sim: run echo mine > mine.txt ;; say done");
  expect(readFileSync(join(project.dir, "mine.txt"), "utf8")).toBe("mine\n");
  await expect(page.getByRole("banner").getByText(project.dir)).toBeVisible();
  await desk.tab("Changes");
  await expect(panel(desk).getByText("these changes are already there")).toBeVisible();
  await expect.poll(() => rows(desk, "mine.txt")).toEqual(["+mine"]);
  await expect(panel(desk).getByRole("button", { name: "Apply" })).toHaveCount(0);
  await panel(desk).getByRole("button", { name: "Undo run 1" }).click();
  await page.getByRole("dialog", { name: "Are you sure?" }).getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => existsSync(join(project.dir, "mine.txt")), { timeout: 30_000 }).toBe(false);
});

test("files are uploaded, and a refused source leaves the message", async ({ desk, page, thole, expected }) => {
  expected.push(/40[04]|422/, /Failed to load resource/);
  await begin(desk);
  await expect(page.getByText("Explain this project")).toHaveCount(0);
  await desk.work(join(thole.root, "nowhere"));
  await desk.send("Keep me sim: run cat a.txt ;; say %tool%");
  await expect(desk.chat.getByRole("alert").first()).toContainText("Not sent");
  await expect(desk.input).toHaveValue("Keep me sim: run cat a.txt ;; say %tool%");
  await desk.source.click();
  await dialog(desk).getByText("Upload", { exact: true }).click();
  await dialog(desk).getByLabel("Choose files").setInputFiles([{ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("from the browser\n") }]);
  await expect(dialog(desk).getByText("a.txt")).toBeVisible();
  await dialog(desk).getByRole("button", { name: "Use this" }).click();
  await desk.input.press("Enter");
  await desk.idle();
  await expect(desk.said("from the browser")).toBeVisible();
  await desk.tab("Changes");
  await expect(panel(desk).getByText("No files have changed in this chat.")).toBeVisible();
});

test("a server that is away leaves the changes that were seen", async ({ desk, thole, expected }) => {
  expected.push(/./);
  const project = new Project(thole);
  await begin(desk);
  await choose(desk, project.dir);
  await desk.ask("Away sim: run echo a > a.txt ;; say done");
  await desk.tab("Changes");
  await expect.poll(() => rows(desk, "a.txt")).toEqual(["+a"]);
  await thole.stop();
  await panel(desk).getByLabel("Which changes").selectOption({ label: "Run 1" });
  await expect(panel(desk).getByText("thole does not answer")).toBeVisible();
  await thole.start();
  await expect.poll(() => rows(desk, "a.txt"), { timeout: 30_000 }).toEqual(["+a"]);
});

test.describe("on a phone", () => {
  test.use({ viewport: devices["Pixel 7"].viewport, colorScheme: "dark" });
  test("changes are a sheet over the chat", async ({ desk, page, thole }) => {
    const project = new Project(thole);
    await desk.newChat();
    await page.getByRole("combobox", { name: "Permissions" }).selectOption("full");
    await choose(desk, project.dir);
    await desk.ask(`Phone ${script} ;; say done`);
    await page.getByRole("button", { name: "Show details" }).click();
    await desk.tab("Changes");
    await expect(fileIn(desk, "new.txt")).toBeVisible();
    await desk.fits();
    await desk.accessible();
    if (process.env.THOLE_LOOK) await page.screenshot({ path: `${process.env.THOLE_LOOK}/phone.png` });
    await fileIn(desk, "new.txt").getByRole("button", { name: "Comment on line 1" }).click();
    await fileIn(desk, "new.txt").getByLabel("Comment", { exact: true }).fill("Hm.");
    await panel(desk).getByRole("button", { name: "Put into the message" }).click();
    await expect(desk.input).toHaveValue("new.txt:1\n> new\n\nHm.");
  });
});
