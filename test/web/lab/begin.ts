import { expect, type Page } from "@playwright/test";

/** begin starts a run in a chat of its own, from outside the page, and answers with the chat's id. */
export async function begin(page: Page, text: string, name?: string): Promise<string> {
  return page.evaluate(
    async ([text, name]) => {
      const headers = { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof")! };
      const post = async (path: string, body: unknown) => (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json() as Promise<{ id: string }>;
      const { id } = await post("/sessions", { provider: "test", name, execution_profile: "ask", source: { kind: "empty" } });
      await post(`/sessions/${id}/runs`, { text });
      return id;
    },
    [text, name] as const,
  );
}

/** over waits until a chat's run is over, as the server says. */
export const over = (page: Page, id: string): Promise<void> =>
  expect
    .poll(() => page.evaluate(async (id) => ((await (await fetch(`/sessions/${id}`, { headers: { "thole-proof": localStorage.getItem("thole.proof")! } })).json()) as { active_run_id?: string }).active_run_id, id))
    .toBeUndefined();
