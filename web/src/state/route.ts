import { parse as pattern } from "regexparam";
import { matchRoute } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { isOver } from "../ui/focus";
import { Store } from "./store";

/** Route is what the address bar says, and the only place that knows which chat is chosen. */
export type Route =
  | { page: "start" | "new" | "inbox" | "usage" | "connections" | "users" }
  | { page: "chat"; id: string; message?: string }
  | { page: "settings"; section?: string }
  | { page: "share"; token: string };

const plain = (page: "new" | "inbox" | "usage" | "connections" | "users") => (): Route => ({ page });
const chat = ({ id }: Params): Route => ({ page: "chat", id: id!, message: decode(location.hash.slice(1)) || undefined });
type Params = Record<string, string | undefined>;

// A path that stands here twice has another spelling that links out there use.
const routes: [string, (params: Params) => Route][] = [
  ["/c/:id", chat],
  ["/chat/:id", chat],
  ["/new", plain("new")],
  ["/inbox", plain("inbox")],
  ["/usage", plain("usage")],
  ["/me/usage", plain("usage")],
  ["/connections", plain("connections")],
  ["/me/connections", plain("connections")],
  ["/users", plain("users")],
  ["/settings/:section?", ({ section }) => ({ page: "settings", section })],
  ["/share", () => ({ page: "share", token: decode(location.hash.slice(1)) })], // where no server sees it
];

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no escape, but a percent sign
  }
}

export function parse(path: string): Route {
  for (const [wanted, make] of routes) {
    const [fits, params] = matchRoute(pattern, wanted, path);
    if (fits) return make(Object.fromEntries(Object.entries(params as Params).map(([name, value]) => [name, value && decode(value)])));
  }
  return { page: "start" };
}

export const pathOf = (to: Route): string => {
  switch (to.page) {
    case "start":
      return "/";
    case "chat":
      return `/c/${encodeURIComponent(to.id)}${to.message ? `#${encodeURIComponent(to.message)}` : ""}`;
    case "settings":
      return to.section ? `/settings/${encodeURIComponent(to.section)}` : "/settings";
    case "share":
      return `/share#${encodeURIComponent(to.token)}`;
    default:
      return `/${to.page}`;
  }
};

const address = (): string => location.pathname + location.hash;
let last = address();

export const route = new Store<Route>(parse(location.pathname));

// The router says when the address changed from here as the browser says when it went back.
for (const event of ["popstate", "hashchange", "pushState", "replaceState"])
  addEventListener(event, () => {
    if (address() === last) return;
    last = address();
    route.set(parse(location.pathname));
  });

export function go(to: Route, replace = false): void {
  const path = pathOf(to);
  if (path !== address()) navigate(path, { replace: replace || isOver() });
}
