import type { ReactNode } from "react";
import { openable } from "./address";

/** Out leads out of the page, to an address that others wrote; one that must not be opened stays as text. */
export function Out({ href, className, title, children }: { href: unknown; className?: string; title?: string; children: ReactNode }) {
  const to = openable(href);
  if (to === undefined)
    return (
      <span className={className} title={typeof href === "string" ? href.slice(0, 300) : title}>
        {children}
      </span>
    );
  return (
    <a href={to} className={className} title={title} {...(to.startsWith("#") ? {} : { target: "_blank", rel: "noreferrer noopener" })}>
      {children}
    </a>
  );
}
