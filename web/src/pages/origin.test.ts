import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { speak } from "../i18n";
import { setPrefs } from "../state/prefs";
import { originOf } from "./origin";

// As the server says them: internal/provider/setup, internal/gateway/upstream, internal/system.
const said = [
  "the scripted model of --demo",
  "no key: models that need none",
  "variable OPENAI_API_KEY of your shell",
  "variable ANTHROPIC_API_KEY of claude's settings",
  "variable OPENAI_API_KEY",
  "vault item my key",
  "your login of codex",
  "your login of opencode, openai",
  "opencode's settings, openai",
  "model provider acme of codex's settings, variable ACME_KEY",
  "gateway.upstreams acme, vault:acme",
  "your login of claude, which is not there",
];

it("English is what the server says", () => {
  for (const words of said) expect(originOf(words)).toBe(words);
});

it("Chinese has no English but names", async () => {
  setPrefs({ language: "zh" });
  await speak();
  for (const words of said.filter((it) => !it.startsWith("gateway."))) expect(originOf(words)).not.toMatch(/\b(variable|settings|login|item|key:|need|there|provider|scripted)\b/);
  expect(originOf("variable OPENAI_API_KEY of your shell")).toContain("OPENAI_API_KEY");
  setPrefs({ language: "en" });
  await speak();
});

it("the server still says it so", () => {
  const source = ["provider/setup/setup.go", "provider/setup/claude.go", "provider/setup/opencode.go", "provider/setup/codex.go", "gateway/upstream/sources.go", "gateway/upstream/describe.go", "system/gateway.go"]
    .map((name) => readFileSync(`../internal/${name}`, "utf8"))
    .join("\n");
  for (const words of ["the scripted model of --demo", "no key: models that need none", "variable ", " of your shell", " of claude's settings", "vault item ", "your login of ", "opencode's settings, ", "model provider ", " of codex's settings", ", which is not there"])
    expect(source, words).toContain(`"${words}`);
});
