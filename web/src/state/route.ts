import { Store } from "./store";

/** Route is what the address bar says: a session, a new chat, a page about the user, or nothing yet. */
export type Route = { page: "start" } | { page: "new" } | { page: "chat"; id: string } | { page: "usage" } | { page: "connections" };

const parse = (path: string): Route => {
  const chat = /^\/c\/([^/]+)\/?$/.exec(path);
  if (chat) return { page: "chat", id: decodeURIComponent(chat[1]!) };
  const named = (["new", "usage", "connections"] as const).find((page) => pathOf({ page }) === path.replace(/\/$/, ""));
  return { page: named ?? "start" };
};

// The API has /usage itself, so the user's pages stand under a name of their own.
export const pathOf = (to: Route): string => {
  switch (to.page) {
    case "chat":
      return `/c/${encodeURIComponent(to.id)}`;
    case "new":
      return "/new";
    case "usage":
    case "connections":
      return `/me/${to.page}`;
    default:
      return "/";
  }
};

export const route = new Store<Route>(parse(location.pathname));

addEventListener("popstate", () => route.set(parse(location.pathname)));

export function go(to: Route, replace = false): void {
  const path = pathOf(to);
  if (path !== location.pathname) history[replace ? "replaceState" : "pushState"](null, "", path);
  route.set(to);
}
