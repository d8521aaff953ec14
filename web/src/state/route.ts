import { Store } from "./store";

/** Route is what the address bar says: a session, a new chat, or nothing yet. */
export type Route = { page: "start" } | { page: "new" } | { page: "chat"; id: string };

const parse = (path: string): Route => {
  const chat = /^\/c\/([^/]+)\/?$/.exec(path);
  if (chat) return { page: "chat", id: decodeURIComponent(chat[1]!) };
  return path === "/new" ? { page: "new" } : { page: "start" };
};

export const route = new Store<Route>(parse(location.pathname));

addEventListener("popstate", () => route.set(parse(location.pathname)));

export const pathOf = (to: Route): string => (to.page === "chat" ? `/c/${encodeURIComponent(to.id)}` : to.page === "new" ? "/new" : "/");

export function go(to: Route, replace = false): void {
  const path = pathOf(to);
  if (path !== location.pathname) history[replace ? "replaceState" : "pushState"](null, "", path);
  route.set(to);
}
