import { defineConfig } from "@playwright/test";

// Real Chromium against the real binary. Three workers, each with a thole of its own: half of the time a test waits.
const soak = process.env.THOLE_SOAK ? 3 : 1;

export default defineConfig<object, { slowed: number; disordered: boolean }>({
  testDir: "specs",
  workers: 3,
  timeout: 180_000 * soak,
  expect: { timeout: 20_000 * soak },
  reporter: [["list"]],
  outputDir: process.env.THOLE_WEB_OUT ?? "/tmp/thole-web-test",
  globalSetup: "./lab/build.ts",
  // THOLE_SOAK=1: the whole suite in a browser with a quarter of this machine, and with what pages hear at their start in other orders.
  projects: process.env.THOLE_SOAK ? [{ name: "slowed", use: { slowed: 4 } }, { name: "disordered", use: { disordered: true } }] : [{ name: "page" }],
  use: {
    viewport: { width: 1280, height: 800 },
    locale: "en-US",
    // What a service worker answers escapes routes of tests; its own specs allow it.
    serviceWorkers: "block",
    colorScheme: "light",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    },
  },
});
