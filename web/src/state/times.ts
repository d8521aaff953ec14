import { useEffect } from "react";
import { get } from "../api/http";
import type { Run, RunTime } from "../api/types";
import { useSide } from "../chat/context";
import { endPhase } from "./fold";
import { Store, useStore } from "./store";

/** times is what runs that ended on this page spent their time on; messages from the history say it themselves. */
const times = new Store<Record<string, RunTime>>({});

/**
 * useRunTime is what a run's time was spent on, as far as it is known. The server counts it when the run ends and once more
 * when its files are saved, so the newest run is asked for it at both moments.
 */
export function useRunTime(id: string, given?: RunTime): RunTime | undefined {
  const known = useStore(times, (it) => it[id]);
  const phase = useSide((side) => (side.run?.id === id && side.run.outcome ? side.run.phase : undefined));
  const final = useSide(({ run }) => run?.id === id && run.time !== undefined && run.outcome !== undefined && run.phase === endPhase[run.outcome]);
  useEffect(() => {
    if (!phase || final) return;
    get<Run>(`/runs/${id}`)
      .then((run) => run.time && times.set((old) => ({ ...old, [id]: run.time! })))
      .catch(() => {}); // the next phase, or the next visit, asks again
  }, [id, phase, final]);
  return known ?? given;
}
