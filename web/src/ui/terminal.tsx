import { type CSSProperties, useMemo } from "react";
import { screen, type Style } from "./ansi";

// eslint-disable-next-line no-control-regex
const special = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

/** Terminal shows what a program wrote: colours and lines written over, as text. */
export function Terminal({ text }: { text: string }) {
  const lines = useMemo(() => (special.test(text) ? screen(text) : undefined), [text]);
  if (!lines) return text;
  return lines.map((line, row) => (
    <span key={row}>
      {line.map((run, at) =>
        run.style ? (
          <span key={at} className={classOf(run.style)} style={styleOf(run.style)}>
            {run.text}
          </span>
        ) : (
          run.text
        ),
      )}
      {row < lines.length - 1 && "\n"}
    </span>
  ));
}

const classOf = (style: Style): string =>
  [style.bold && "font-semibold", style.dim && "opacity-70", style.italic && "italic", style.underline && "underline", style.strike && "line-through"]
    .filter(Boolean)
    .join(" ");

// The sixteen follow the palette of the page; others are what the program chose.
const colour = (name: string): string => (name.startsWith("rgb(") ? name : `var(--ansi-${name})`);

function styleOf({ fg, bg, inverse }: Style): CSSProperties | undefined {
  const front = fg && colour(fg);
  const back = bg && colour(bg);
  if (inverse) return { color: back ?? "var(--code)", backgroundColor: front ?? "var(--ink)" };
  return front || back ? { color: front, backgroundColor: back } : undefined;
}
