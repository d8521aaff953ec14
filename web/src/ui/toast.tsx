import { useEffect } from "react";
import type { Problem } from "../api/http";
import { t } from "../i18n";
import { Store, useStore } from "../state/store";
import { IconButton } from "./controls";
import { CloseIcon } from "./icons";

const toast = new Store<{ text: string; hint?: string } | undefined>(undefined);

/** report shows why something did not work. */
export function report(error: unknown): void {
  const { message, hint } = error as Problem;
  toast.set({ text: `${t("common.failed")}: ${message}`, hint });
}

/** tried runs an action and reports its failure. It is for actions that leave everything as it was when they fail. */
export async function tried<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch (error) {
    report(error);
    return undefined;
  }
}

/** succeeded is tried for callers that go on only after a success. */
export async function succeeded(action: Promise<unknown>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    report(error);
    return false;
  }
}

export const say = (text: string, hint?: string): void => toast.set({ text, hint });

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
        <div className="pointer-events-auto flex max-w-lg items-start gap-2 rounded-xl border border-line-strong bg-surface py-2 pl-4 pr-2
          text-[13px] shadow-pop">
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
