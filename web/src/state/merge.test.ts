import { describe, expect, it } from "vitest";
import type { ChatMessage, MessageMetadata } from "../api/types";
import { keyOf, merge, older, steady } from "./merge";

const message = (id: string, role: "user" | "assistant" = "assistant", metadata?: MessageMetadata, text = id): ChatMessage => ({ id, role, metadata, parts: [{ type: "text", text }] });
const known = (id: string, role: "user" | "assistant" = "assistant", client_id?: string) => message(id, role, { run_id: id, ...(client_id && { client_id }) });
const ids = (list: ChatMessage[]) => list.map((it) => it.id);

describe("merge", () => {
  it("replaces our own copy of a message by the server's, under the same key", () => {
    const merged = merge([known("r1"), message("mine", "user")], [known("u2", "user", "mine"), known("r2")]);
    expect(ids(merged)).toEqual(["r1", "u2", "r2"]);
    expect(keyOf(merged[1]!)).toBe("mine");
  });

  it("keeps a message that is still on its way", () => {
    expect(ids(merge([known("r1"), message("mine", "user")], [known("r1")]))).toEqual(["r1", "mine"]);
  });

  it("appends runs that happened elsewhere", () => {
    expect(ids(merge([known("r1")], [known("u2", "user"), known("r2")]))).toEqual(["r1", "u2", "r2"]);
  });

  it("drops what the server no longer has inside the page", () => {
    expect(ids(merge([known("r1"), known("gone"), known("r3")], [known("r1"), known("r2"), known("r3")]))).toEqual(["r1", "r2", "r3"]);
  });

  it("changes nothing for an empty page", () => {
    const local = [known("r1")];
    expect(merge(local, [])).toBe(local);
  });
});

it("older pages go before, without what is there", () => {
  expect(ids(older([known("r2"), known("r3")], [known("r1"), known("r2")]))).toEqual(["r1", "r2", "r3"]);
});

describe("steady", () => {
  const long = message("r", "assistant", undefined, "a long answer");
  const short = message("r", "assistant", undefined, "a lo");

  it("keeps an answer from shrinking while it is repeated", () => {
    expect(steady([long], [short], true)[0]).toBe(long);
    expect(steady([short], [long], true)[0]).toBe(long);
  });

  it("lets it be what it is otherwise", () => {
    expect(steady([long], [short], false)[0]).toBe(short);
  });
});
