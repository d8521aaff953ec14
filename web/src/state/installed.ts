import { listen } from "../events/client";
import { Store } from "./store";

/** updated: the server has another build of this page than the one that runs here. */
export const updated = new Store(false);

/** entryOf is the script that a page begins with; its name carries the sum of its content. */
export const entryOf = (html: string): string | undefined => /<script[^>]+src="(\/assets\/[^"]+)"/.exec(html)?.[1];

async function look(): Promise<void> {
  const here = document.querySelector<HTMLScriptElement>('script[type="module"][src^="/assets/"]')?.getAttribute("src");
  if (!here) return; // in development
  const response = await fetch("/", { headers: { accept: "text/html" }, cache: "no-cache" });
  const there = response.ok ? entryOf(await response.text()) : undefined;
  if (there) updated.set(there !== here);
}

/** followBuild looks, whenever the line comes back, whether the server was updated meanwhile. */
export const followBuild = (): (() => void) => listen({ ready: (lost) => lost && void look().catch(() => {}) });

/** install registers the worker that shows notices and the page of a server that is away. Without it everything else works. */
export function install(): void {
  if (import.meta.env.PROD && isSecureContext) void navigator.serviceWorker?.register("/sw.js").catch(() => {});
}
