import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { login } from "../state/account";
import SourceDialog from "./source-dialog";

// The answers about folders come when a test says so.
let answers: Record<string, (to: string) => Promise<void>>;

beforeEach(() => {
  answers = {};
  vi.stubGlobal("fetch", (path: string) => {
    if (!path.startsWith("/sources/folders")) return Promise.resolve(Response.json({ title: "no", status: 404 }, { status: 404 }));
    return new Promise<Response>((resolve) => {
      answers[new URL(path, "http://x").searchParams.get("path") ?? ""] = (to) =>
        act(async () => resolve(Response.json({ path: to, items: [], truncated: false })));
    });
  });
  login.set({ state: "in", account: { local: true } } as never);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function folder(): HTMLInputElement {
  render(<SourceDialog onChoose={() => {}} onClose={() => {}} />);
  fireEvent.click(screen.getByLabelText("Folder of this machine"));
  return screen.getByLabelText("Folder");
}

test("the field begins with the folder that the server names", async () => {
  const field = folder();
  await answers[""]!("/home/ada");
  expect(field.value).toBe("/home/ada");
});

test("an answer that comes late changes nothing that was typed, or is about to be", async () => {
  const field = folder();
  act(() => field.focus());
  await answers[""]!("/home/ada");
  expect(field.value).toBe("");
  fireEvent.change(field, { target: { value: "/src/app/" } });
  fireEvent.click(screen.getByRole("button", { name: "Open" }));
  fireEvent.change(field, { target: { value: "/src/app/sub" } });
  await answers["/src/app/"]!("/src/app");
  expect(field.value).toBe("/src/app/sub");
  fireEvent.click(screen.getByRole("button", { name: "Open" }));
  await answers["/src/app/sub"]!("/src/app/sub-1");
  expect(field.value).toBe("/src/app/sub-1");
});
