import { defineConfig } from "@playwright/test";

// Real Chromium against the real binary. Two workers, each with a thole of its own: half of the time a test waits.
export default defineConfig({
  testDir: "specs",
  workers: 2,
  timeout: 90_000,
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  outputDir: process.env.THOLE_WEB_OUT ?? "/tmp/thole-web-test",
  globalSetup: "./lab/build.ts",
  use: {
    viewport: { width: 1280, height: 800 },
    locale: "en-US",
    colorScheme: "light",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    },
  },
});
