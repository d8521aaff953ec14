import { t } from "../i18n";
import { translated } from "../i18n/phrases";
import { proof, proofHeader } from "./proof";

/** Problem is an answer that is not a success: what happened, and what to do about it. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly hint?: string,
    readonly trace?: string,
  ) {
    super(message);
    this.name = "Problem";
  }
}

export interface Answer<T> {
  data: T;
  etag?: string;
}

interface Options {
  /** Sent as JSON, but for files and forms. */
  body?: unknown;
  /** What a file is. */
  media?: string;
  /** The version an edit was made from: a stale edit is refused. */
  etag?: string;
  /** Repeats with the same key give what the first one made. */
  key?: string;
  signal?: AbortSignal;
  /** The request carries a secret of its own, so a refusal of it does not mean that nobody is logged in. */
  strange?: boolean;
}

/** silent is the problem of a request that nobody answered: what became of it is not known. */
export const silent = (): Problem => new Problem(t("problem.silent"), 0, "unavailable", t("problem.silentHint"));

/** signedOut is called once a request finds nobody logged in. */
let signedOut: () => void = () => {};
export function onSignedOut(handler: () => void): void {
  signedOut = handler;
}

export async function request<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { accept: "application/json", ...proofHeader(proof()) };
  const raw = options.body instanceof Blob || options.body instanceof FormData;
  // The browser itself says where the parts of a form begin.
  if (options.body !== undefined && !(options.body instanceof FormData)) headers["content-type"] = options.media ?? "application/json";
  if (options.etag) headers["if-match"] = options.etag;
  if (options.key) headers["idempotency-key"] = options.key;
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: raw ? (options.body as BodyInit) : JSON.stringify(options.body), signal: options.signal });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw silent();
  }
  if (!response.ok) throw await problemOf(response, options.strange);
  try {
    const data = response.status === 204 ? undefined : await response.json();
    return { data: data as T, etag: response.headers.get("etag") ?? undefined };
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw silent(); // the line was lost in the middle of the answer
  }
}

/** problemOf reads a refusal, and notes when it says that nobody is logged in. */
export async function problemOf(response: Response, strange = false): Promise<Problem> {
  if (response.status === 401 && !strange) signedOut();
  const trace = response.headers.get("x-trace-id") ?? undefined;
  const text = (await response.text().catch(() => "")).trim();
  const plain = text.startsWith("<") ? "" : text.slice(0, 300); // a proxy's page says less than its status
  const status = [response.status, response.statusText].filter(Boolean).join(" ");
  try {
    const body = JSON.parse(text) as { title?: string; detail?: string; code?: string; hint?: string; errors?: { message?: string; location?: string }[] };
    const fields = body.errors?.map((it) => [it.location, it.message].filter(Boolean).join(": ")).join("; ");
    return refusal(response.status, body.code, body.detail || body.title || status, body.hint || fields || undefined, trace);
  } catch {
    const code = response.headers.get("x-thole-code") ?? undefined;
    return refusal(response.status, code, plain || status, undefined, trace);
  }
}

function refusal(status: number, code = "internal", said: string, hint?: string, trace?: string): Problem {
  const { message, hint: help } = translated({ message: said, hint, code });
  return new Problem(message, status, code, help, trace);
}

export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> => (await request<T>("GET", path, { signal })).data;

export const post = async <T>(path: string, body: unknown = {}, key?: string): Promise<T> => (await request<T>("POST", path, { body, key })).data;

/** download fetches by a link that works once: a link cannot carry the page's proof. */
export async function download(path: string): Promise<void> {
  const { ticket } = await post<{ ticket: string }>("/auth/tickets", { path });
  const link = document.createElement("a");
  link.href = `${path}${path.includes("?") ? "&" : "?"}ticket=${encodeURIComponent(ticket)}`;
  link.download = "";
  link.click();
}

export const query = (values: Record<string, string | number | boolean | undefined>): string => {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== "") search.set(name, String(value));
  const text = search.toString();
  return text ? `?${text}` : "";
};

/** uuid also works on plain http from another machine, where crypto.randomUUID is missing. */
export function uuid(): string {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
