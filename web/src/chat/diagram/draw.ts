import mermaid from "mermaid";
import { hasMarkup } from "./markup";

const longest = 20_000;
const mostTime = 20_000;

// What a diagram's text may not set for itself.
const fixed = ["secure", "securityLevel", "startOnLoad", "maxTextSize", "suppressErrorRendering", "maxEdges", "htmlLabels"];
fixed.push("themeCSS", "fontFamily", "dompurifyConfig");

let made = 0;

/**
 * draw makes a picture of a diagram's text. The picture is shown as an image, in which nothing runs and nothing is loaded
 * whatever the text says; labels are plain text, and the text cannot change the rules.
 */
export async function draw(text: string, dark: boolean): Promise<string> {
  if (text.length > longest) throw new Error("the diagram is too large");
  if (hasMarkup(text)) throw new Error("the diagram has markup in it");
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false, useMaxWidth: false },
    suppressErrorRendering: true,
    maxTextSize: longest,
    maxEdges: 300,
    theme: dark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
    deterministicIds: true,
    secure: fixed,
  });
  const id = `diagram-${++made}`;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise<never>((_, failed) => (timer = setTimeout(() => failed(new Error("the diagram takes too long")), mostTime)));
    const { svg } = await Promise.race([mermaid.render(id, text), late]);
    return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sized(svg))}`;
  } finally {
    clearTimeout(timer);
    for (const left of [id, `d${id}`, `i${id}`]) document.getElementById(left)?.remove(); // where it was measured
  }
}

/** sized gives the picture the size that its contents have: an image has no room around it to fill. */
function sized(svg: string): string {
  const tree = new DOMParser().parseFromString(svg, "image/svg+xml");
  const root = tree.documentElement;
  if (root.nodeName !== "svg") throw new Error("the diagram is not a picture");
  const [, , width, height] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  if (width && height) {
    root.setAttribute("width", String(width));
    root.setAttribute("height", String(height));
  }
  root.style.maxWidth = "none";
  return new XMLSerializer().serializeToString(root);
}
