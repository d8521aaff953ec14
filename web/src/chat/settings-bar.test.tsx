import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Providers, Session } from "../api/types";
import type { Conversation } from "../state/conversation";
import { emptySide, type Side } from "../state/fold";
import { emptyOutbox } from "../state/outbox";
import { prefs, setPrefs } from "../state/prefs";
import { providers } from "../state/providers";
import { Store } from "../state/store";
import { ConversationContext } from "./context";
import { ProfileSwitch } from "./profile-switch";
import { profileOf, SettingsBar } from "./settings-bar";

afterEach(cleanup);

const agent = (name: string, ...names: string[]) => {
  const profiles = names.map((profile) => ({ profile }));
  return { name, title: name, available: true, capabilities: {}, profiles };
};
const list = { items: [agent("one", "plan", "ask", "full"), agent("two", "ask", "full"), agent("three", "ask")], default: "one" } as unknown as Providers;

beforeEach(() => {
  globalThis.fetch = () => Promise.reject(new TypeError("no network"));
  providers.set(list);
  setPrefs({ provider: "one", profile: "full", model: "m" });
});

const draw = (session?: Partial<Session>) => {
  const conversation = { side: new Store<Side>({ ...emptySide, session: session as Session }), box: new Store(emptyOutbox), settings: {} };
  render(
    <ConversationContext value={conversation as unknown as Conversation}>
      <ProfileSwitch />
      <SettingsBar />
    </ConversationContext>,
  );
};
const choose = (name: string) => fireEvent.change(screen.getByRole("combobox", { name: "Agent" }), { target: { value: name } });
const chosen = () => (screen.getByRole("radio", { checked: true }) as HTMLInputElement).parentElement!.textContent;

test("choosing the agent of a new chat keeps the permission, also by way of one that lacks it", () => {
  draw();
  expect(chosen()).toBe("Full");
  choose("two");
  expect(chosen()).toBe("Full");
  choose("three");
  expect(chosen()).toBe("Ask");
  choose("one");
  expect(chosen()).toBe("Full");
});

test("another agent for a chat that has begun takes its permission along", () => {
  draw({ id: "s", provider: "one", execution_profile: "plan", runs: 1 });
  choose("two");
  expect(prefs.get()).toMatchObject({ provider: "two", profile: "plan" });
  expect(profileOf(list.items[1], "plan")).toBe("ask");
});

test("a mode that is an agent's own is chosen next to the permissions, and another agent falls back to asking", () => {
  const own = { ...list.items[0]!, native_modes: [{ mode: "general/edit", title: "x", asks: false }, { mode: "moon", title: "To the moon", asks: true }] };
  providers.set({ ...list, items: [own, ...list.items.slice(1)] });
  draw();
  const modes = screen.getByRole<HTMLSelectElement>("combobox", { name: "Modes of one" });
  expect([...modes.options].map((it) => it.text)).toEqual(["More modes…", "General agent, edits without asking", "To the moon"]);
  fireEvent.change(modes, { target: { value: "moon" } });
  expect(modes.value).toBe("moon");
  expect(screen.queryByRole("radio", { checked: true })).toBeNull();
  choose("two");
  expect(chosen()).toBe("Ask");
});
