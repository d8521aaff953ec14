import { type ReactNode, useEffect, useState } from "react";
import { t } from "../../i18n";
import "../../i18n/later";
import { prefs } from "../../state/prefs";
import { useStore } from "../../state/store";
import { Button } from "../../ui/controls";

const settled = 300; // ms without a change: a text that is still being written is not drawn

/** Diagram shows a diagram's picture, or its text: while it is written, where it cannot be drawn, and when the reader asks for it. */
export function Diagram({ text, children }: { text: string; children: ReactNode }) {
  const [picture, setPicture] = useState<string>();
  const [source, setSource] = useState(false);
  useStore(prefs, (it) => it.theme);
  const dark = document.documentElement.dataset.theme === "dark";
  useEffect(() => {
    let wanted = true;
    const timer = setTimeout(() => {
      import("./draw")
        .then(({ draw }) => draw(text, dark))
        .then(
          (url) => wanted && setPicture(url),
          () => wanted && setPicture(undefined),
        );
    }, settled);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text, dark]);
  if (!picture) return children;
  return (
    <div>
      {source ? (
        children
      ) : (
        <div className="overflow-x-auto p-3 text-center" tabIndex={0}>
          <img src={picture} alt={t("diagram.alt")} className="inline-block max-h-[36rem] max-w-full" onError={() => setPicture(undefined)} />
        </div>
      )}
      <Button look="quiet" className="mb-1 ml-1" aria-pressed={source} onClick={() => setSource(!source)}>
        {t("diagram.source")}
      </Button>
    </div>
  );
}
