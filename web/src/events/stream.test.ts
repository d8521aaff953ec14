import { afterEach, expect, it, vi } from "vitest";
import { fetchStream, parser } from "./stream";

afterEach(() => vi.unstubAllGlobals());

const text = ': thole\n\nevent: ready\ndata: {"a":1}\n\nid: 3\ndata: {"b":"é"}\n\n: alive\n\ndata: {"c":2}\n\n';

it("reads events at every cut", () => {
  for (let cut = 0; cut <= text.length; cut++) {
    const got: string[] = [];
    const next = parser((type, data) => got.push(`${type}|${data}`));
    next(text.slice(0, cut));
    next(text.slice(cut));
    expect(got).toEqual(['ready|{"a":1}', '|{"b":"é"}', '|{"c":2}']);
  }
});

const answer = (body: BodyInit, status = 200) => {
  const asked = vi.fn((_url: string, _init: RequestInit) => Promise.resolve(new Response(body, { status })));
  vi.stubGlobal("fetch", asked);
  return asked;
};

it("sends the proof, delivers, and says when the line ended", async () => {
  const asked = answer(text);
  const got: string[] = [];
  const stream = fetchStream("/events", "p");
  stream.onmessage = ({ data }) => got.push(data);
  stream.addEventListener("ready", ({ data }) => got.push(`ready ${data}`));
  await new Promise<void>((done) => (stream.onerror = done));
  expect(got).toEqual(['ready {"a":1}', '{"b":"é"}', '{"c":2}']);
  expect(asked.mock.calls[0]![1].headers).toMatchObject({ "thole-proof": "p" });
});

it("a refusal is a lost line, and a closed stream says nothing", async () => {
  answer("", 401);
  const refused = fetchStream("/events", "p");
  await new Promise<void>((done) => (refused.onerror = done));
  answer(text);
  const closed = fetchStream("/events", "p");
  const said = vi.fn();
  closed.onerror = closed.onmessage = said;
  closed.close();
  await new Promise((done) => setTimeout(done));
  expect(said).not.toHaveBeenCalled();
});
