import type { FileUIPart } from "ai";

/** The images that models look at. Any other file is laid into the workspace. */
const seen = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export const isPicture = (file: FileUIPart): boolean => seen.has(file.mediaType);

/** inputOf is a file as a run takes it. */
export const inputOf = (file: FileUIPart) =>
  isPicture(file) ? { type: "image" as const, url: file.url } : { type: "file" as const, name: file.filename ?? "", url: file.url };
