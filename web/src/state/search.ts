import { useEffect, useState } from "react";
import { get, query } from "../api/http";
import type { SearchHit, SearchHits } from "../api/types";
import { toMessage } from "./anchor";
import type { Route } from "./route";

export interface Asked<T> {
  items: T[];
  /** The answer to what is asked now is here, or none is needed. */
  done: boolean;
  failed?: boolean;
}

/** useAsked asks thole for what answers a text, a moment after it was typed. An answer to another text is never shown. */
export function useAsked<T>(asked: string, pathOf: (asked: string) => string): Asked<T> {
  const path = asked && pathOf(asked);
  const [found, setFound] = useState<{ path: string; items: T[]; failed?: boolean }>({ path: "", items: [] });
  useEffect(() => {
    if (!path) return;
    const over = new AbortController();
    const timer = setTimeout(() => {
      get<{ items: T[] }>(path, over.signal).then(
        ({ items }) => setFound({ path, items }),
        () => !over.signal.aborted && setFound({ path, items: [], failed: true }),
      );
    }, 150);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [path]);
  return found.path === path ? { ...found, done: true } : { items: [], done: !path };
}

const pathOf = (asked: string, archived?: boolean) => `/search${query({ query: asked.slice(0, 500), archived: archived || undefined, limit: 20 })}`;

/** useHits are the places in messages where a text stands, the newest first. */
export const useHits = (asked: string, archived = false): Asked<SearchHits["items"][number]> => useAsked(asked, (text) => pathOf(text, archived));

/** placeOfHit is where a hit can be read. */
export const placeOfHit = (hit: SearchHit): Route => toMessage(hit.session.id, hit.message_id);
