import { lazy, Suspense } from "react";

// The renderer comes in a file of its own. Where that cannot be had (the server is away, or an update has renamed it) the
// words stand as they are: a page that goes blank would lose more than a table.
const Markdown = lazy(() => import("./markdown").catch(() => ({ default: Plain })));

function Plain({ text }: { text: string }) {
  return <div className="prose whitespace-pre-wrap">{text}</div>;
}

/** Prose is markdown; until its renderer has come the text stands as it is. */
export function Prose({ text }: { text: string }) {
  return (
    <Suspense fallback={<Plain text={text} />}>
      <Markdown text={text} />
    </Suspense>
  );
}
