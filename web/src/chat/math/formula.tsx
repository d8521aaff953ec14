import katex from "katex";
import "katex/dist/katex.min.css";
import { useMemo } from "react";
import plugin from "remark-math";

export { plugin };

const longest = 5_000;

/** render is a formula as HTML, or nothing where it cannot be one. Commands that load or link are not trusted. */
function render(tex: string, display: boolean): string | undefined {
  if (tex.length > longest) return undefined;
  try {
    return katex.renderToString(tex, {
      displayMode: display,
      throwOnError: true,
      trust: false,
      strict: "ignore",
      maxSize: 20,
      maxExpand: 200,
      macros: {}, // each its own: a formula defines nothing for the next
    });
  } catch {
    return undefined;
  }
}

/** Formula is drawn by KaTeX; one that it cannot read stands as it was written. */
export default function Formula({ tex, display }: { tex: string; display: boolean }) {
  const html = useMemo(() => render(tex, display), [tex, display]);
  if (html === undefined) return <code>{tex}</code>;
  return display ? (
    <div className="overflow-x-auto overflow-y-hidden py-1" tabIndex={0} dangerouslySetInnerHTML={{ __html: html }} />
  ) : (
    <span dangerouslySetInnerHTML={{ __html: html }} />
  );
}
