import { afterEach, describe, expect, it, vi } from "vitest";
import type { Session } from "../api/types";
import { deleteSession, editSession, loadSessions, sessions } from "./sessions";

const session = (id: string, name = id) => ({ id, name, preview: "" }) as unknown as Session;
const answer = (body: unknown, status = 200) => new Response(status === 204 ? null : JSON.stringify(body), { status, headers: { "content-type": "application/json" } });

/** server answers lists only on demand, with what it knew when it was asked. */
function server(all: Session[]) {
  const lists: (() => void)[] = [];
  vi.stubGlobal(
    "fetch",
    vi.fn(async (_: string, init?: RequestInit) => {
      switch (init?.method ?? "GET") {
        case "DELETE":
          all = all.slice(1);
          return answer(null, 204);
        case "PATCH":
          all = [{ ...all[0]!, ...JSON.parse(init!.body as string) }, ...all.slice(1)];
          return answer(all[0]);
      }
      const items = all;
      return new Promise<Response>((done) => lists.push(() => done(answer({ items }))));
    }),
  );
  return lists;
}

afterEach(() => vi.unstubAllGlobals());

describe("the list of chats", () => {
  for (const [what, change, want] of [
    ["deleted", () => deleteSession("a"), ["b"]],
    ["renamed", () => editSession("a", { name: "new" }), ["new", "b"]],
  ] as const) {
    it(`does not bring back what was ${what} while it was being read`, async () => {
      const lists = server([session("a"), session("b")]);
      const first = loadSessions();
      await change();
      await vi.waitFor(() => expect(lists.length).toBe(2));
      lists[1]!();
      await vi.waitFor(() => expect(sessions.get().state).toBe("idle"));
      lists[0]!();
      await first;
      expect(sessions.get().items.map((it) => it.name)).toEqual(want);
    });
  }
});
