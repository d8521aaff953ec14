import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { emptyOutbox } from "../../state/outbox";
import { Store } from "../../state/store";
import { Toast } from "../../ui/toast";
import { Composer } from "../composer";
import type { Command } from "./slash";

afterEach(cleanup);

function setUp(commands: Command[] = [], prompts: string[] = []) {
  const box = new Store(emptyOutbox);
  const send = vi.fn();
  const nothing = () => {};
  const props = { box, busy: false, stopping: false, canSteer: false, onSend: send, onSteer: nothing, onStop: nothing };
  render(
    <>
      <Composer {...props} commands={commands} prompts={() => prompts} />
      <Toast />
    </>,
  );
  const field = screen.getByRole<HTMLTextAreaElement>("textbox");
  const type = (text: string) => {
    fireEvent.change(field, { target: { value: text } });
    field.setSelectionRange(text.length, text.length);
    fireEvent.select(field);
  };
  return { box, send, field, type };
}

it("runs a command instead of sending it, and sends what is not one", () => {
  const run = vi.fn();
  const { send, field, type } = setUp([{ name: "stop", about: "", run }]);
  type("/st");
  expect(screen.getByRole("option", { name: /\/stop/ }).getAttribute("aria-selected")).toBe("true");
  expect(field.getAttribute("aria-activedescendant")).toBe(screen.getByRole("option").id);
  fireEvent.keyDown(field, { key: "Enter" });
  expect(run).toHaveBeenCalledOnce();
  expect(field.value).toBe("");
  type("/usr/bin is a path");
  fireEvent.keyDown(field, { key: "Enter" });
  expect(send).toHaveBeenCalledOnce();
});

it("says why a command cannot be run, and keeps the text", () => {
  const run = vi.fn();
  const { send, field, type } = setUp([{ name: "stop", about: "", blocked: "nothing runs", run }]);
  type("/stop");
  fireEvent.keyDown(field, { key: "Enter" });
  expect(run).not.toHaveBeenCalled();
  expect(send).not.toHaveBeenCalled();
  expect(field.value).toBe("/stop");
});

it("leaves Enter and the arrows to an input method", () => {
  const { send, field, type } = setUp([], ["earlier"]);
  type("");
  fireEvent.keyDown(field, { key: "ArrowUp", isComposing: true });
  expect(field.value).toBe("");
  type("你好");
  fireEvent.keyDown(field, { key: "Enter", isComposing: true });
  expect(send).not.toHaveBeenCalled();
});

it("recalls earlier prompts and gives the draft back", () => {
  const { field, type } = setUp([], ["first", "second"]);
  type("draft");
  field.setSelectionRange(0, 0);
  fireEvent.keyDown(field, { key: "ArrowUp" });
  expect(field.value).toBe("second");
  fireEvent.keyDown(field, { key: "ArrowUp" });
  expect(field.value).toBe("first");
  fireEvent.keyDown(field, { key: "ArrowDown" });
  fireEvent.keyDown(field, { key: "ArrowDown" });
  expect(field.value).toBe("draft");
});

it("says which file cannot be attached and why", async () => {
  const { box, field } = setUp();
  const files = [new File(["x"], "notes.txt", { type: "text/plain" }), new File([new Uint8Array(11 << 20)], "big.png", { type: "image/png" })];
  fireEvent.paste(field, { clipboardData: { files, items: [], types: ["Files"] } });
  expect(box.get().files).toEqual([]);
  expect(await screen.findByText("big.png is larger than 10 MB.")).toBeDefined();
});
