// What the browser runs for thole while no page of it is open: it shows notices that a page made, and a page that says so
// when the server is away. It keeps nothing else: no answer of the API, no page and no asset, so nothing here can be stale.
// The server says how long assets live; their names change with their content.

const store = "thole-away-1";
const away = "/away.html";

self.addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(store);
    await cache.add(new Request(away, { cache: "reload" }));
    await self.skipWaiting();
  };
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  const begin = async () => {
    for (const name of await caches.keys()) if (name !== store) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(begin());
});

// Pages of the user's own, and nothing of the API: what the login learns about who opened it must come from the browser.
const pages = /^\/(?:|new|inbox|usage|connections|settings|(?:c|chat|me|settings)\/[^/]+)\/?$/;

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode !== "navigate" || request.method !== "GET" || !pages.test(new URL(request.url).pathname)) return;
  const load = async () => {
    try {
      return await fetch(request);
    } catch {
      return (await caches.match(away)) ?? Response.error();
    }
  };
  event.respondWith(load());
});

self.addEventListener("notificationclick", (event) => {
  const { path } = event.notification.data ?? {};
  event.notification.close();
  if (typeof path !== "string" || !path.startsWith("/c/")) return;
  const open = async () => {
    const all = await self.clients.matchAll({ type: "window" });
    const there = all.find((it) => new URL(it.url).pathname === path) ?? all[0];
    if (!there) return self.clients.openWindow(path);
    const shown = await there.focus().catch(() => there);
    shown.postMessage({ open: path });
  };
  event.waitUntil(open());
});
