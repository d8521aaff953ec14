import { lazy, Suspense } from "react";

const Markdown = lazy(() => import("./markdown"));

/** Prose is markdown; until its renderer has come the text stands as it is. */
export function Prose({ text }: { text: string }) {
  return (
    <Suspense fallback={<div className="prose whitespace-pre-wrap">{text}</div>}>
      <Markdown text={text} />
    </Suspense>
  );
}
