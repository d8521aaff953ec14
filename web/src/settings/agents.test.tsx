import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { Providers } from "../api/types";
import { providers } from "../state/providers";
import { Agents } from "./agents";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const config = {
  servers: [{ name: "weather", origin: "https://example.org" }, { name: "local", off: true }],
  skills: ["review"],
  keys: [
    { from: "~/.codex/AGENTS.md", fate: "passed" },
    { from: "~/.codex/config.toml", key: "notify", fate: "refused", why: "it would start a program" },
  ],
};

test("an agent's section names its MCP servers, instructions and skills, and says what is left out and why", async () => {
  vi.stubGlobal("fetch", async (path: string) =>
    path === "/providers/codex/config" ? Response.json(config) : Response.json({ title: "no", status: 404 }, { status: 404 }),
  );
  providers.set({ items: ["codex", "claude"].map((name) => ({ name, title: name, available: true })) } as unknown as Providers);
  render(<Agents />);
  const codex = screen.getByRole("region", { name: "codex" });
  expect((await within(codex).findByText("weather")).closest("li")!.textContent).toContain("https://example.org");
  expect(within(codex).getByText("local").closest("li")!.textContent).toContain("off");
  within(codex).getByText("~/.codex/AGENTS.md");
  within(codex).getByText("review");
  fireEvent.click(within(codex).getByText("1 entries are left out"));
  within(codex).getByText("it would start a program");
  within(screen.getByRole("region", { name: "claude" })).getByText(/get nothing of your own configuration/);
  expect(screen.getByRole("link", { name: "Connections" }).getAttribute("href")).toBe("/connections");
});
