import { type ReactNode, useCallback, useEffect, useState } from "react";
import { get, type Problem } from "../api/http";
import { t } from "../i18n";
import { useTab } from "../state/tab";
import { Button, Notice } from "../ui/controls";

/** Page is the frame of what stands in place of the chat. */
export function Page({ title, about, action, children }: { title: string; about: string; action?: ReactNode; children: ReactNode }) {
  useTab(title);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={title}>
      <div className="mx-auto w-full max-w-4xl px-3 py-6 md:px-6 md:py-10">
        <div className="mb-1 flex flex-wrap items-center justify-between gap-2">
          <h1 className="text-[22px] font-semibold tracking-tight">{title}</h1>
          {action}
        </div>
        <p className="mb-6 max-w-prose text-[13px] text-muted">{about}</p>
        {children}
      </div>
    </div>
  );
}

export function Section({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="mb-8">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-[13px] font-semibold">{title}</h2>
        {action}
      </div>
      {children}
    </section>
  );
}

export interface Loaded<T> {
  value?: T;
  problem?: Problem;
  reload: () => void;
}

/** useLoad reads something now and whenever its path changes; an answer that was overtaken is dropped. */
export function useLoad<T>(path: string): Loaded<T> {
  const [state, setState] = useState<{ path: string; value?: T; problem?: Problem }>({ path });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    get<T>(path, gone.signal)
      .then((value) => setState({ path, value }))
      .catch((problem: Problem) => !gone.signal.aborted && setState((old) => ({ path, value: old.path === path ? old.value : undefined, problem })));
    return () => gone.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((it) => it + 1), []);
  return { value: state.path === path ? state.value : undefined, problem: state.path === path ? state.problem : undefined, reload };
}

/** Failed says why something could not be read, and tries again. */
export function Failed({ problem, reload }: { problem: Problem; reload: () => void }) {
  return (
    <Notice tone="bad" title={problem.message} action={<Button onClick={reload}>{t("app.again")}</Button>}>
      {problem.hint}
    </Notice>
  );
}
