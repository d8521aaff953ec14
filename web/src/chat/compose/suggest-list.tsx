import { useEffect, useRef } from "react";
import { t } from "../../i18n";
import type { Suggestion } from "./slash";
import type { Suggestions } from "./use-suggest";

export const optionID = (list: string, at: number): string => `${list}-${at}`;

/** SuggestList stands over the field, which keeps the focus. */
export function SuggestList({ id, suggestions, onPick }: { id: string; suggestions: Suggestions; onPick: (item: Suggestion) => void }) {
  const { kind, items, at, setAt } = suggestions;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, items]);
  return (
    <div className="absolute inset-x-0 bottom-full z-20 mb-1.5 overflow-hidden rounded-xl border border-line bg-surface shadow-pop">
      <div
        ref={list}
        id={id}
        role="listbox"
        aria-label={t(kind === "commands" ? "suggest.commands" : "suggest.files")}
        className="max-h-[min(18rem,40dvh)] overflow-y-auto p-1"
      >
        {items.map((item, index) => (
          <div
            key={item.id}
            id={optionID(id, index)}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
            onClick={() => onPick(item)}
            className={`flex min-h-8 cursor-pointer items-center gap-3 rounded-lg px-2 text-[13px] ${index === at ? "bg-hover" : ""}`}
          >
            <span className={`min-w-0 truncate font-mono text-[12.5px] ${item.note ? "max-w-[60%] shrink-0" : ""}`}>{item.text}</span>
            {item.note && <span className="min-w-0 flex-1 truncate text-[12.5px] text-muted">{item.note}</span>}
          </div>
        ))}
      </div>
      <p role="status" className="sr-only">
        {t("suggest.count", { n: items.length })}
      </p>
    </div>
  );
}
