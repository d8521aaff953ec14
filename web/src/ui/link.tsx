import type { ReactNode } from "react";
import { go, pathOf, type Route } from "../state/route";

interface Props {
  to: Route;
  className?: string;
  /** It leads to where the user is. */
  current?: boolean;
  /** The name of a link that is an icon alone. */
  label?: string;
  children: ReactNode;
  onClick?: () => void;
}

/** Link leads to another page without a reload; with a modifier key it is a link like any other. */
export function Link({ to, className = "", current, label, children, onClick }: Props) {
  return (
    <a
      href={pathOf(to)}
      aria-label={label}
      title={label}
      aria-current={current ? "page" : undefined}
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
