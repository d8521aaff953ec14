import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Session } from "../api/types";
import { sessions } from "../state/sessions";
import type { Action } from "./actions";
import Palette from "./palette";

const action = (id: string, title: string): Action => ({ id, group: "pages", title, run: vi.fn() });
const chat = (id: string, name: string) => ({ id, name, preview: "", updated_at: new Date().toISOString() }) as Session;
const chats = [chat("1", "Oars"), chat("2", "Boats")];

beforeEach(() => {
  Element.prototype.scrollIntoView = () => {};
  const hit = { session: { id: "4", title: "A long talk" }, item_id: "i", message_id: "m", seq: 7, role: "user", run_at: new Date().toISOString() };
  vi.stubGlobal("fetch", async (url: string) =>
    url.startsWith("/search")
      ? Response.json({ items: [{ ...hit, before: "…of ", match: "oars", after: " and <b>\u202e" }] })
      : Response.json({ items: [chat("3", "Old oars"), chats[0]] }),
  );
  sessions.set((old) => ({ ...old, items: chats }));
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("moves with the arrows, around the ends, and runs what is chosen after it closed", () => {
  const [one, two] = [action("a", "First page"), action("b", "Second page")];
  const closed = vi.fn(() => expect(two.run).not.toHaveBeenCalled());
  render(<Palette actions={[one, two]} onClose={closed} />);
  const field = screen.getByRole("combobox");
  const chosen = () => screen.getAllByRole("option").find((it) => it.getAttribute("aria-selected") === "true")!;
  expect(field.getAttribute("aria-activedescendant")).toBe(chosen().id);
  fireEvent.keyDown(field, { key: "ArrowUp" });
  expect(chosen().textContent).toContain("Boats"); // the last one
  fireEvent.keyDown(field, { key: "ArrowDown" });
  fireEvent.keyDown(field, { key: "ArrowDown" });
  expect(chosen().textContent).toContain("Second page");
  fireEvent.keyDown(field, { key: "Enter" });
  expect(closed).toHaveBeenCalledOnce();
  expect(two.run).toHaveBeenCalledOnce();
});

it("takes what was typed before it came, and finds what the server knows, each chat once", async () => {
  render(<Palette actions={[]} early={() => "oars"} onClose={() => {}} />);
  expect(screen.getByRole<HTMLInputElement>("combobox").value).toBe("oars");
  const group = await screen.findByRole("group", { name: "Found in messages" });
  const place = within(group).getByRole("option");
  expect(place.textContent).toContain("A long talk…of oars and <b>\\u202e");
  expect(place.querySelector("mark")?.textContent).toBe("oars");
  expect(within(screen.getByRole("group", { name: "Chats" })).getAllByRole("option").map((it) => it.textContent)).toEqual([
    expect.stringContaining("Oars"),
    expect.stringContaining("Old oars"),
  ]);
  fireEvent.click(place);
  expect(location.pathname + location.hash).toBe("/c/4#m-m");
});

it("leaves Enter to an input method", () => {
  const only = action("a", "First page");
  render(<Palette actions={[only]} onClose={() => {}} />);
  fireEvent.keyDown(screen.getByRole("combobox"), { key: "Enter", isComposing: true });
  expect(only.run).not.toHaveBeenCalled();
});
