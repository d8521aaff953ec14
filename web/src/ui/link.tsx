import type { ReactNode } from "react";
import { go, pathOf, type Route } from "../state/route";

/** Link leads to another page without a reload; with a modifier key it is a link like any other. */
export function Link({ to, className = "", children, onClick }: { to: Route; className?: string; children: ReactNode; onClick?: () => void }) {
  return (
    <a
      href={pathOf(to)}
      className={className || "font-medium underline underline-offset-2"}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        onClick?.();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
