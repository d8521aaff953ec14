import { beforeEach, expect, it } from "vitest";
import { Keeper, newChatIDs } from "./keep";
import { arrived, edit, emptyOutbox, giveBack, learn, type Outbox, swap, take, takeAside, unsure } from "./outbox";

const written = (text: string, box: Outbox = emptyOutbox): Outbox => edit(box, { text });
const image = (url: string) => ({ type: "file" as const, mediaType: "image/png", filename: "a.png", url });
const silence = { state: "unknown" as const };

it("a message that comes back stands in the field, and goes out again under its id", () => {
  const [sent, message] = take(written("hello"))!;
  expect(sent.text).toBe("");
  const back = giveBack(sent, message.id, silence);
  expect(back.text).toBe("hello");
  expect(take(back)![1].id).toBe(message.id);
  expect(take(written("hello you", back))![1].id).not.toBe(message.id);
});

it("an id that the server will never finish is not used again", () => {
  const [sent, message] = take(written("hello"))!;
  const back = giveBack(sent, message.id, { state: "absent", spent: true });
  expect(take(back)![1].id).not.toBe(message.id);
});

it("nothing that is being written is overwritten", () => {
  const [sent, first] = take({ ...written("first"), files: [image("data:1")] })!;
  const back = giveBack(written("second", sent), first.id, silence);
  expect(back.text).toBe("second");
  expect(back.aside.map((it) => [it.text, it.files.length])).toEqual([["first", 1]]);
  const swapped = swap(back, first.id);
  expect([swapped.text, swapped.files.length, swapped.aside[0]!.text]).toEqual(["first", 1, "second"]);
  expect(takeAside(back, first.id)![1]).toMatchObject({ id: first.id, text: "first" });
});

it("a message that arrived after all leaves the field, unless it was changed", () => {
  const [sent, message] = take(written("hello"))!;
  const back = giveBack(sent, message.id, silence);
  expect(unsure(back)).toHaveLength(1);
  expect(arrived(back, message.id)).toMatchObject({ text: "", back: undefined });
  expect(arrived(written("hello you", back), message.id)).toMatchObject({ text: "hello you", back: undefined });
  expect(arrived(back, "another")).toBe(back);
  expect(unsure(learn(back, message.id, { state: "absent" }))).toEqual([]);
});

beforeEach(() => sessionStorage.clear());

it("what is written and what is under way outlive the page, with their images", () => {
  const [sent, message] = take({ ...written("under way"), files: [image("data:1")] })!;
  new Keeper("A").save(edit(sent, { text: "next", files: [image("data:2")] }), true);
  expect(newChatIDs()).toEqual(["A"]);
  const box = new Keeper("A").load();
  expect([box.text, box.files[0]!.url]).toEqual(["next", "data:2"]);
  expect(box.aside).toMatchObject([{ id: message.id, text: "under way", files: [{ url: "data:1" }], why: silence }]);
  expect(new Keeper("B").load()).toEqual(emptyOutbox);
  new Keeper("A").save(emptyOutbox, true);
  expect(newChatIDs()).toEqual([]);
  expect(sessionStorage.length).toBe(0);
});

it("images that the browser has no room for are counted, and the words stay", () => {
  const keeper = new Keeper("A");
  keeper.save({ ...written("words"), files: [image("data:1")] }, false);
  sessionStorage.removeItem("thole.images.A");
  expect(new Keeper("A").load()).toMatchObject({ text: "words", files: [], lost: 1 });
});
