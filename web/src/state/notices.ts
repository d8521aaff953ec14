import type { ServerEvent } from "../api/types";
import { listen } from "../events/client";
import { t, type Key } from "../i18n";
import { translated } from "../i18n/phrases";
import { line } from "../ui/plain";
import { prefs } from "./prefs";
import { go, pathOf } from "./route";
import { nameOf } from "./names";

// Notices of the browser, made by the page itself: no service of a vendor hears of them. They come only while no tab of
// thole can be seen, and once however many tabs there are.

export interface Notice {
  session: string;
  body: string;
  /** A later notice with the same tag takes the place of this one. */
  tag: string;
}

/** support says whether this browser can show notices here: only pages of this machine or over TLS may. */
export const supported = (): boolean => typeof Notification !== "undefined" && isSecureContext && navigator.locks !== undefined;

/** noticeOf is what is worth a notice: an end that nobody asked for, and a question. */
export function noticeOf(event: ServerEvent): Notice | undefined {
  const session = event.session_id;
  if (!session) return undefined;
  if (event.type === "human_loop.requested" && event.data.question) {
    const { kind, title, command, question_id } = event.data.question;
    return { session, tag: `ask-${question_id}`, body: [line(title ?? "") || t(`ask.${kind}` as Key), line(command ?? "")].filter(Boolean).join("\n") };
  }
  if (event.type !== "run.ended" || event.data.outcome === "interrupted") return undefined;
  const failed = [t("notices.failed"), line(event.data.error ? translated(event.data.error).message : "")].filter(Boolean).join(": ");
  return { session, tag: `end-${session}`, body: event.data.outcome === "failed" ? failed : t("notices.done") };
}

const seen = new Set<string>();
/** old: a stream that goes back repeats what is long over. */
const old = 5 * 60_000;

/** isNews is true once for every fact: a stream may repeat it. */
export function isNews(event: ServerEvent, now = Date.now()): boolean {
  const key = event.id ?? `${event.session_id} ${event.seq} ${event.type}`;
  if (seen.has(key) || now - Date.parse(event.ts) > old) return false;
  seen.add(key);
  if (seen.size > 500) seen.delete(seen.values().next().value!);
  return true;
}

const sight = "thole-in-sight";
const speaker = "thole-notices";

/** holdWhileSeen holds a lock while the page can be seen, for the tab that speaks to ask about. */
function holdWhileSeen(): () => void {
  let release: (() => void) | undefined;
  const update = () => {
    if (document.visibilityState === "visible" && !release) {
      const held = new Promise<void>((done) => (release = done));
      void navigator.locks.request(sight, { mode: "shared" }, () => held);
    } else if (document.visibilityState !== "visible") {
      release?.();
      release = undefined;
    }
  };
  update();
  document.addEventListener("visibilitychange", update);
  return () => {
    document.removeEventListener("visibilitychange", update);
    release?.();
  };
}

const inSight = async (): Promise<boolean> => ((await navigator.locks.query()).held ?? []).some((it) => it.name === sight);

/** show prefers the service worker's way: on phones there is no other, and its notices outlive the page. */
async function show(notice: Notice): Promise<void> {
  const title = (await nameOf(notice.session)) || "thole";
  const options = { body: notice.body.slice(0, 300), tag: notice.tag, icon: "/icon-192.png", data: { path: pathOf({ page: "chat", id: notice.session }) } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, options);
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    go({ page: "chat", id: notice.session });
    shown.close();
  };
  open.set(notice.tag, shown);
}

const open = new Map<string, Notification>();

/** take takes back the notice of a question that was answered. */
async function take(tag: string): Promise<void> {
  open.get(tag)?.close();
  open.delete(tag);
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const it of (await worker?.getNotifications({ tag })) ?? []) it.close();
}

/** followNotices shows what happens while nobody looks. One tab does it for all; when that is closed, another one. */
export function followNotices(): () => void {
  if (!supported()) return () => {};
  const unsee = holdWhileSeen();
  const over = new AbortController();
  let speaks = false;
  let quiet: (() => void) | undefined;
  navigator.locks
    .request(speaker, { signal: over.signal }, () => {
      speaks = true;
      return new Promise<void>((done) => (quiet = done));
    })
    .catch(() => {}); // it was never its turn
  const unlisten = listen({
    event: (event) => {
      if (event.type === "human_loop.resolved" && speaks) void take(`ask-${event.data.question_id}`);
      const notice = noticeOf(event);
      if (!notice || !isNews(event) || !speaks || !prefs.get().notify || Notification.permission !== "granted") return;
      void inSight().then((seen) => (seen ? undefined : show(notice)));
    },
  });
  const leave = ({ data }: MessageEvent<{ open?: string }>) => {
    const id = /^\/c\/([^/]+)$/.exec(data?.open ?? "")?.[1];
    if (id) go({ page: "chat", id: decodeURIComponent(id) });
  };
  navigator.serviceWorker?.addEventListener("message", leave);
  return () => {
    unsee();
    unlisten();
    over.abort();
    quiet?.();
    navigator.serviceWorker?.removeEventListener("message", leave);
  };
}
