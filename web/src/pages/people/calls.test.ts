import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { type Everybody, nameOf, placesOf } from "./calls";

it("offers each role where the server's table gives it a right", () => {
  const rows = readFileSync("../internal/authz/table.txt", "utf8")
    .split("\n")
    .filter((line) => /^(\w+_admin|viewer|member) /.test(line))
    .map((line) => line.split(/\s+/));
  const found: Record<string, Set<string>> = {};
  for (const [role, , , , user, project, projectUser, app, appUser, platform] of rows) {
    const at = (found[role!] ??= new Set());
    if (user === "yes") at.add("user").add("department");
    if (project === "yes" || projectUser === "yes") at.add("project");
    if (app === "yes" || appUser === "yes") at.add("app");
    if (platform === "yes") at.add("platform");
  }
  const sorted = (all: Record<string, Iterable<string>>) => Object.fromEntries(Object.entries(all).map(([role, at]) => [role, [...at].sort()]));
  expect(sorted(found)).toEqual(sorted(placesOf));
});

it("calls users by their login, departments by their name, and what is gone by its id", () => {
  const all = { users: [{ id: "u1", login: "ada" }], departments: [{ id: "d1", name: "research" }], grants: [] } as unknown as Everybody;
  expect(["u1", "d1", "x"].map((id) => nameOf(all, id))).toEqual(["ada", "research", "x"]);
});
