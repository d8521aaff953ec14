import { get, request } from "../api/http";
import type { OfferedSources, Session, SourceChoice, Upload } from "../api/types";
import { t } from "../i18n";
import { Store } from "./store";

/** Chosen is where the files of a new chat come from. The title is the page's own name for it. */
export type Chosen = Omit<SourceChoice, "name"> & { title?: string };

/** offers are what thole proposes; unset until it answered. */
export const offers = new Store<OfferedSources | undefined>(undefined);

export async function loadOffers(): Promise<void> {
  offers.set(await get<OfferedSources>("/sources/recent"));
}

/** wireOf is a choice as thole takes it. A branch is named after the first message. */
export function wireOf(chosen: Chosen | undefined, message: string): SourceChoice | undefined {
  if (!chosen) return undefined;
  const { title: _, ...source } = chosen;
  return source.kind === "branch" ? { ...source, name: message.slice(0, 200) } : source;
}

/** isProject: there are files to talk about. */
export const isProject = (source: { kind: string } | undefined): boolean => source !== undefined && source.kind !== "empty";

const last = (path: string): string => path.replace(/[/\\]+$/, "").split(/[/\\:]/).at(-1)?.replace(/\.git$/, "") || path;

/** nameOf is a choice in a few words. */
export function nameOf(chosen: Chosen | undefined): string {
  switch (chosen?.kind) {
    case "branch":
      return [last(chosen.repo ?? ""), chosen.ref, chosen.dirty && t("source.dirtyShort")].filter(Boolean).join(" · ");
    case "here":
      return t("source.hereShort", { dir: chosen.dir ?? "" });
    case "upload":
      return chosen.title || t("source.upload");
    case "template":
      return t("source.template");
    default:
      return t("source.empty");
  }
}

/** placeOf says where a session works: the repository and its branch, or a directory of this machine. */
export function placeOf(session: Session | undefined): string | undefined {
  const source = session?.source;
  if (source?.kind === "branch") return [last(source.repo ?? ""), source.branch].filter(Boolean).join(" · ");
  if (source?.kind === "here") return session?.dir;
  if (source?.kind === "upload") return t("source.upload");
  return undefined;
}

const archives: [RegExp, string][] = [
  [/\.zip$/i, "application/zip"],
  [/\.tar$/i, "application/x-tar"],
  [/\.(tgz|tar\.gz)$/i, "application/gzip"],
  [/\.(tzst|tar\.zst)$/i, "application/zstd"],
];

/** Found is a file with its place among the others. */
export interface Found {
  path: string;
  file: File;
}

/** sendUpload sends one archive as it is, and anything else file by file. */
export async function sendUpload(files: Found[]): Promise<Upload> {
  const media = files.length === 1 ? archives.find(([ending]) => ending.test(files[0]!.path))?.[1] : undefined;
  if (media) return (await request<Upload>("POST", "/uploads", { body: files[0]!.file, media })).data;
  const form = new FormData();
  for (const { path, file } of files) form.append(path, file);
  return (await request<Upload>("POST", "/uploads", { body: form })).data;
}

/** dropped are the files of a drop, those in folders too. */
export async function dropped(data: DataTransfer): Promise<Found[]> {
  const entries = [...data.items].map((it) => it.webkitGetAsEntry()).filter((it) => it !== null);
  return (await Promise.all(entries.map(walk))).flat();
}

async function walk(entry: FileSystemEntry): Promise<Found[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    return [{ path: entry.fullPath.replace(/^\//, ""), file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) break; // a reader gives a hundred at a time
    all.push(...some);
  }
  return (await Promise.all(all.map(walk))).flat();
}
