import { useMemo } from "react";
import { get, query } from "../../api/http";
import type { FoundFiles } from "../../api/types";
import type { Chosen } from "../../state/source";
import { useSide } from "../context";
import { useLocal, useSource } from "../source-picker";
import type { FileSearch } from "./use-suggest";

/** searchPath is where the files of a chat are found that has not begun: only on this machine, and only where there are some. */
export function searchPath(source: Chosen | undefined, local: boolean): string | undefined {
  if (!local || !source) return undefined;
  const { kind, repo, ref, dirty, dir } = source;
  if (kind === "branch" && repo?.startsWith("/")) return `/sources/files${query({ kind, repo, ref, dirty: dirty || undefined })}`;
  if (kind === "here" && dir) return `/sources/files${query({ kind, dir })}`;
  return undefined;
}

/** useFileSearch finds files of the chat's workspace, or of what it would work on. */
export function useFileSearch(): FileSearch | undefined {
  const id = useSide((side) => side.session?.id);
  const [source] = useSource();
  const local = useLocal();
  const before = searchPath(source, local);
  return useMemo(() => {
    const path = id ? `/sessions/${id}/files/search` : before;
    if (!path) return undefined;
    return async (q, signal) => (await get<FoundFiles>(`${path}${path.includes("?") ? query({ q }).replace("?", "&") : query({ q })}`, signal)).items;
  }, [id, before]);
}
