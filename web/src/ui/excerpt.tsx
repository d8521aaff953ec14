import type { SearchHit } from "../api/types";
import { line } from "./plain";

const spaced = (text: string): string => line(text.replace(/\s+/g, " "));

/** Excerpt is what stands around a hit, with the hit marked. */
export const Excerpt = ({ hit, className = "" }: { hit: SearchHit; className?: string }) => (
  <span className={`text-[12px] text-muted wrap-anywhere ${className}`}>
    {spaced(hit.before)}
    <mark className="rounded-sm bg-warn-soft text-ink">{spaced(hit.match)}</mark>
    {spaced(hit.after)}
  </span>
);
