import type { IncomingMessage } from "node:http";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// In development the API comes from THOLE_URL: a running `thole up`, or `npm run mock`.
const api = process.env.THOLE_URL ?? "http://127.0.0.1:7799";
const owned = ["/auth", "/sessions", "/sources", "/uploads", "/runs", "/human-loop", "/jobs", "/batches", "/ledger", "/providers", "/budgets", "/vault"];
owned.push("/usage", "/connections", "/inbox", "/events", "/api", "/openapi.json", "/healthz");
// The page has names of its own below some of them.
const page = (path: string, accept = "") => (/^\/(usage|connections|inbox)$/.test(path) && accept.includes("text/html") ? "/index.html" : undefined);
const proxy = { target: api, changeOrigin: true, bypass: (request: IncomingMessage) => page(request.url ?? "", request.headers.accept) };

// Every browser that runs the page takes the smallest form of the formulas' fonts; the others would only make the program larger.
const fonts = {
  name: "woff2-only",
  enforce: "pre" as const,
  transform: (code: string, id: string) =>
    id.includes("katex") && id.includes(".css") ? code.replace(/,url\([^)]*\.(woff|ttf)\) ?format\(["'][a-z]+["']\)/g, "") : undefined,
};

export default defineConfig({
  plugins: [fonts, react(), tailwindcss()],
  resolve: { dedupe: ["react", "react-dom", "ai"] },
  server: { host: "127.0.0.1", proxy: Object.fromEntries(owned.map((path) => [path, proxy])) },
  build: {
    target: "es2023",
    // Everything a page needs comes from files: the content policy has no place for inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  worker: { format: "es" },
  test: { environment: "happy-dom", include: ["src/**/*.test.{ts,tsx}"] },
});
