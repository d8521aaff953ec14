/** openable is an address that a click may open: a page of the web, a mail, a place of this page. Anything else is only text. */
export function openable(url: unknown): string | undefined {
  if (typeof url !== "string") return undefined;
  // A path without a scheme is a file of the agent's, which is nowhere on the web.
  if (!/^(https?:|mailto:|#|\/(?![/\\]))/i.test(url)) return undefined;
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(url, location.href).protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** picture is an address that may be drawn: the picture is in it, or it is of this server. Nothing is loaded from elsewhere. */
export function picture(url: unknown): string | undefined {
  if (typeof url !== "string") return undefined;
  return /^(data:image\/[\w.+-]+[;,]|blob:|\/(?![/\\]))/i.test(url) ? url : undefined;
}
