import type { BrowserContext } from "@playwright/test";

// What a page hears at its start: what it reads, and what its event worker sends. Every pair of them may arrive the other way round.
export const heard: Record<string, string> = {
  providers: "/providers$",
  sessions: "/sessions\\?",
  snapshot: "/snapshot$",
  messages: "/messages\\?",
  runs: "/runs\\?",
  questions: "/human-loop\\?",
  todos: "/todos/events",
  phases: "/phases$",
  inbox: "/inbox$",
  events: "", // no address of the page's own: the worker's messages
};

export const pairs = Object.keys(heard).flatMap((first, at, all) => all.slice(at + 1).map((second) => [first, second] as const));
let loads = 0;

/** disorder makes each page of a context hear one pair the other way round: the first of it waits for the second, or for a moment where that does not come. */
export async function disorder(context: BrowserContext, ...only: (readonly [string, string])[]): Promise<void> {
  const chosen = only.length ? only : pairs;
  const start = only.length ? 0 : (loads += 7); // no divisor of the number of pairs: all are met
  await context.addInitScript(
    ([heard, pairs, start]) => {
      const key = "test-loads";
      const count = Number(sessionStorage.getItem(key) ?? 0);
      sessionStorage.setItem(key, String(count + 1));
      const [first, second] = pairs[(start + count) % pairs.length]!;
      const nameOf = (path: string) => Object.keys(heard).find((name) => heard[name] && new RegExp(heard[name]!).test(path));
      let came = () => {};
      const other = new Promise<void>((done) => (came = done));
      const held = () => Promise.race([other, new Promise((late) => setTimeout(late, 400))]);
      let waits = true; // only the first time: a page asks again later
      const pass = async (name: string | undefined) => {
        if (name === first && waits) {
          await held();
          waits = false;
        }
        if (name === second) setTimeout(came); // after those who waited for it
      };
      const fetched = window.fetch;
      window.fetch = async (...args: Parameters<typeof fetch>) => {
        const answer = await fetched(...args);
        const url = new URL(answer.url || location.href);
        await pass(nameOf(url.pathname + (url.search ? "?" : "")));
        return answer;
      };
      // A port keeps the order of its own messages.
      const at = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage")!;
      Object.defineProperty(MessagePort.prototype, "onmessage", {
        ...at,
        set(hear: ((event: MessageEvent) => void) | null) {
          let before = Promise.resolve();
          at.set!.call(this, hear && ((event: MessageEvent) => void (before = before.then(() => pass("events")).then(() => hear.call(this, event)))));
        },
      });
    },
    [heard, chosen, start] as const,
  );
}
