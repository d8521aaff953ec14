import { useEffect } from "react";
import type { Problem } from "../api/http";
import { t } from "../i18n";
import { Store, useStore } from "../state/store";
import { IconButton } from "./controls";
import { CloseIcon } from "./icons";

const toast = new Store<{ text: string; hint?: string } | undefined>(undefined);

/** tried runs an action and tells the user when it fails. */
export async function tried<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch (error) {
    const problem = error as Problem;
    toast.set({ text: `${t("common.failed")}: ${problem.message}`, hint: problem.hint });
    return undefined;
  }
}

export const say = (text: string): void => toast.set({ text });

export function Toast() {
  const now = useStore(toast);
  useEffect(() => {
    if (!now) return;
    const timer = setTimeout(() => toast.set(undefined), 8000);
    return () => clearTimeout(timer);
  }, [now]);
  return (
    <div role="status" aria-live="polite" className="pointer-events-none fixed inset-x-0 bottom-4 z-50 flex justify-center px-4">
      {now && (
        <div className="pointer-events-auto flex max-w-lg items-start gap-2 rounded-xl border border-line-strong bg-surface py-2 pl-4 pr-2 text-[13px] shadow-pop">
          <div className="min-w-0 py-1 wrap-anywhere">
            <p>{now.text}</p>
            {now.hint && <p className="text-muted">{now.hint}</p>}
          </div>
          <IconButton label={t("common.close")} onClick={() => toast.set(undefined)}>
            <CloseIcon />
          </IconButton>
        </div>
      )}
    </div>
  );
}
