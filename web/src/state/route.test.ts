import { expect, test } from "vitest";
import { go, parse, pathOf, route, type Route } from "./route";

const all: Route[] = [
  { page: "start" },
  { page: "new" },
  { page: "inbox" },
  { page: "usage" },
  { page: "connections" },
  { page: "settings", section: undefined },
  { page: "settings", section: "tokens" },
  { page: "chat", id: "1-2", message: undefined },
];

test.each(all.map((it) => [pathOf(it), it] as const))("%s is read as it was written", (path, wanted) => expect(parse(path)).toEqual(wanted));

test.each([
  ["/chat/1-2", { page: "chat", id: "1-2" }],
  ["/c/1-2/", { page: "chat", id: "1-2" }],
  ["/me/usage", { page: "usage" }],
  ["/me/connections/", { page: "connections" }],
  ["/c/%E0%A4%A", { page: "chat", id: "%E0%A4%A" }],
  ["/nothing/here", { page: "start" }],
])("%s still leads where it led", (path, wanted) => expect(parse(path)).toMatchObject(wanted));

test("the token of a shared chat stands where no server sees it", () => {
  go({ page: "share", token: "a/b c" });
  expect(location.pathname).toBe("/share");
  expect(route.get()).toEqual({ page: "share", token: "a/b c" });
});

test("the route follows what is pushed and what the browser goes back to", () => {
  go({ page: "chat", id: "one", message: "m 1" });
  expect(location.pathname + location.hash).toBe("/c/one#m%201");
  expect(route.get()).toEqual({ page: "chat", id: "one", message: "m 1" });
  const before = route.get();
  go({ page: "chat", id: "one", message: "m 1" });
  expect(route.get()).toBe(before);
  history.pushState(null, "", "/new"); // not by go
  expect(route.get()).toEqual({ page: "new" });
});
