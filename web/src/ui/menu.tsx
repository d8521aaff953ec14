import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { IconButton } from "./controls";

export interface MenuItem {
  text: string;
  icon?: ReactNode;
  danger?: boolean;
  run: () => void;
}

/** Menu opens a list of actions below its button; arrows move, Escape and a click elsewhere close. */
export function Menu({ label, icon, items, className }: { label: string; icon: ReactNode; items: MenuItem[]; className?: string }) {
  const [at, setAt] = useState<{ top: number; right: number }>();
  const button = useRef<HTMLSpanElement>(null);
  const list = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!at) return;
    list.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: PointerEvent) => {
      if (!list.current?.contains(event.target as Node)) setAt(undefined);
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [at]);

  const close = () => {
    setAt(undefined);
    button.current?.querySelector("button")?.focus();
  };

  const keys = (event: KeyboardEvent) => {
    const entries = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const now = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      entries.at((now + (event.key === "ArrowDown" ? 1 : -1)) % entries.length)?.focus();
    }
  };

  const open = () => {
    const box = button.current!.getBoundingClientRect();
    const below = box.bottom + 4 + items.length * 36 + 12 < innerHeight;
    setAt({ top: below ? box.bottom + 4 : box.top - items.length * 36 - 16, right: Math.max(8, innerWidth - box.right) });
  };

  // A menu inside a modal dialog has to be inside that dialog too, or it would lie under it.
  const home = button.current?.closest("dialog") ?? document.body;
  return (
    <span ref={button}>
      <IconButton label={label} aria-haspopup="menu" aria-expanded={!!at} className={className} onClick={() => (at ? close() : open())}>
        {icon}
      </IconButton>
      {at &&
        createPortal(
          <div
            ref={list}
            role="menu"
            aria-label={label}
            onKeyDown={keys}
            style={at}
            className="fixed z-50 min-w-40 rounded-xl border border-line bg-surface p-1 shadow-pop"
          >
            {items.map((item) => (
              <button
                key={item.text}
                type="button"
                role="menuitem"
                className={`flex h-9 w-full items-center gap-2.5 rounded-lg px-2.5 text-left text-[13px] hover:bg-hover focus-visible:bg-hover
                  ${item.danger ? "text-bad" : ""}`}
                onClick={() => {
                  close();
                  item.run();
                }}
              >
                {item.icon}
                {item.text}
              </button>
            ))}
          </div>,
          home,
        )}
    </span>
  );
}
