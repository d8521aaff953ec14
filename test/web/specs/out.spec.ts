import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Forge } from "../lab/forge.ts";
import { Project } from "../lab/project.ts";
import { expect, test as base } from "../lab/test.ts";
import { Thole } from "../lab/thole.ts";

// What a chat changed leaves by the buttons: into the checked-out branch, to a real bare repository, and as a pull request at a server that is as strict as GitHub describes itself.

const test = base.extend<object, { thole: Thole; forge: Forge }>({
  forge: [
    async ({}, use) => {
      const thole = new Thole(); // for a place only
      const forge = await Forge.start(join(thole.root, "forge"));
      await use(forge);
      await thole.end();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  thole: [
    async ({ forge }, use) => {
      const thole = new Thole();
      thole.configure(`[changes]\nforges = ["${forge.host}=github ${forge.api}"]\n`);
      await thole.start();
      await use(thole);
      await thole.end();
    },
    { scope: "worker", timeout: 60_000 },
  ],
});

test("merge, push and a pull request from the Changes panel", async ({ desk, page, thole, forge, expected }) => {
  test.setTimeout(180_000);
  expected.push(/\/changes\/push/, /Failed to load resource/);
  const project = new Project(thole);
  forge.take(project);
  await desk.newChat();
  await page.getByRole("radiogroup", { name: "Permissions" }).getByText("Full").click();
  await desk.work(project.dir);
  await desk.ask("Greet @everybody sim: run echo hello > hello.txt ;; say fixes #12");
  await desk.tab("Changes");
  const panel = page.getByRole("tabpanel");
  const said = panel.getByRole("status");
  const sure = page.getByRole("dialog", { name: "Are you sure?" });
  const act = async (name: string) => {
    await panel.getByRole("button", { name, exact: true }).click();
    await sure.getByRole("button", { name, exact: true }).click();
  };

  // Nobody kept a token for that server: the page says so, and nothing is there.
  await act("Push");
  await expect(said.getByText(/^push to http/)).toBeVisible();
  expect(() => forge.show("thole")).toThrow();
  thole.feed(`${forge.token}\n`, "secret", "set", "forge", "--kind", "git", "--provider", forge.host, "-");
  await act("Push");
  await expect(said.getByText(/^thole\/greet-everybody-\S+ is pushed to http/)).toBeVisible();
  const branch = (await said.innerText()).split(" ")[0]!;
  expect(forge.show(`${branch}:hello.txt`)).toBe("hello\n");

  await panel.getByRole("button", { name: "Pull request" }).click();
  const form = page.getByRole("dialog", { name: "Pull request" });
  await form.getByLabel("Title").fill("Say hello");
  await form.getByLabel("For the branch").fill("main");
  await form.getByLabel("as a draft").check();
  await desk.accessible();
  await form.getByRole("button", { name: "Open" }).click();
  await expect(said.getByText("Pull request 1 for main is open")).toBeVisible();
  await expect(said.getByRole("link")).toHaveAttribute("href", `${forge.api}/owner/name/pull/1`);
  await panel.getByRole("button", { name: "Pull request" }).click();
  await form.getByLabel("For the branch").fill("main");
  await form.getByRole("button", { name: "Open" }).click();
  await expect(said.getByText("Pull request 1 for main was open and is up to date")).toBeVisible();

  // Something in the way is listed; without it the branch is merged into the one that is checked out.
  writeFileSync(join(project.dir, "hello.txt"), "mine\n");
  await act("Merge");
  await expect(said.getByText("these files are in the way")).toBeVisible();
  await expect(said.getByText("hello.txt")).toBeVisible();
  expect(project.git("log", "--format=%s", "main")).toBe("begin\n");
  project.git("clean", "-qf", "hello.txt");
  await act("Merge");
  await expect(said.getByText(`${branch} is merged into main`)).toBeVisible();
  expect(project.git("show", "main:hello.txt")).toBe("hello\n");
  expect(project.git("status", "--porcelain")).toBe("");

  const pulls = await forge.end();
  expect(pulls).toHaveLength(1);
  expect(pulls[0]).toMatchObject({ Title: "Say hello", Head: branch, Base: "main", Draft: true });
  expect(pulls[0]!.Body).not.toMatch(/@everybody|#12/);
});
