import type { FileUIPart } from "ai";
import { emptyOutbox, isEmpty, type Outbox, reopen } from "./outbox";

// What was written outlives a reload, a logout and a crash of the page, in this tab: two tabs that write to the same chat
// do not overwrite each other. Images are kept as far as the browser has room for them.

const place = (chat: string): string => `thole.outbox.${chat}`;
const images = (chat: string): string => `thole.images.${chat}`;
const newChats = "thole.new";

const filesOf = (box: Outbox): FileUIPart[] => [box, ...(box.back ? [box.back] : []), ...box.aside, ...box.under].flatMap((it) => it.files);

function withFiles(box: Outbox, change: (file: FileUIPart) => FileUIPart[]): Outbox {
  const of = <T extends { files: FileUIPart[] }>(it: T): T => ({ ...it, files: it.files.flatMap(change) });
  return { ...of(box), back: box.back && of(box.back), aside: box.aside.map(of), under: box.under.map(of) };
}

function write(key: string, value: unknown): boolean {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // no room, or a browser that keeps nothing
  }
}

function read<T>(key: string): T | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(key) ?? "null") as T | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function forget(...keys: string[]): void {
  try {
    for (const key of keys) sessionStorage.removeItem(key);
  } catch {
    // then there is nothing to forget
  }
}

/** Keeper writes one chat's outbox down at every change. Images are large: they are written only when they change. */
export class Keeper {
  private urls: string[] = [];

  constructor(private chat: string) {}

  load(): Outbox {
    const box = read<Outbox>(place(this.chat));
    if (!box) return emptyOutbox;
    const kept = read<Record<string, string>>(images(this.chat)) ?? {};
    const lost = box.files.filter((file) => !(file.url in kept)).length;
    const whole = withFiles({ ...emptyOutbox, ...box }, (file) => (file.url in kept ? [{ ...file, url: kept[file.url]! }] : []));
    return reopen({ ...whole, lost: lost || undefined });
  }

  save(box: Outbox, isNew: boolean): void {
    const others = newChatIDs().filter((id) => id !== this.chat);
    if (isEmpty(box)) forget(place(this.chat), images(this.chat));
    else {
      const urls = [...new Set(filesOf(box).map((file) => file.url))];
      if (urls.length !== this.urls.length || urls.some((url, at) => url !== this.urls[at])) {
        this.urls = urls;
        if (!urls.length || !write(images(this.chat), Object.fromEntries(urls.map((url, at) => [String(at), url])))) forget(images(this.chat));
      }
      write(place(this.chat), withFiles(box, (file) => [{ ...file, url: String(urls.indexOf(file.url)) }]));
    }
    if (isNew && !isEmpty(box)) write(newChats, [...others, this.chat]);
    else if (others.length) write(newChats, others);
    else forget(newChats);
  }
}

/** newChatIDs are chats that were begun in this tab and that thole does not have yet, the newest last. */
export const newChatIDs = (): string[] => read<string[]>(newChats) ?? [];
