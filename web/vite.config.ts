import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// In development the API comes from THOLE_URL: a running `thole up`, or `npm run mock`.
const api = process.env.THOLE_URL ?? "http://127.0.0.1:7799";
const owned = ["/auth", "/sessions", "/runs", "/human-loop", "/jobs", "/batches", "/ledger", "/providers", "/usage", "/events", "/api", "/openapi.json", "/healthz"];

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { dedupe: ["react", "react-dom", "ai"] },
  server: { host: "127.0.0.1", proxy: Object.fromEntries(owned.map((path) => [path, { target: api, changeOrigin: true }])) },
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
