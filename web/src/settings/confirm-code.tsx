import type { Problem } from "../api/http";
import { t } from "../i18n";
import "../i18n/later";
import { CommandLine, Notice } from "../ui/controls";

/** codeOf is the code in what `thole login` printed: the link or the code alone. */
export const codeOf = (text: string): { confirm_code?: string } => {
  const code = text.trim().replace(/^.*#code=/, "").replace(/&.*$/, "");
  return code ? { confirm_code: code } : {};
};

export const field = "mt-1 block w-full min-w-0 rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] text-ink hover:border-line-strong";

/** ConfirmCode asks for a fresh proof of who acts, once the server wants one, and says what else went wrong. */
export function ConfirmCode({ problem, code, onChange }: { problem?: Problem; code: string; onChange: (code: string) => void }) {
  const wanted = problem?.code === "forbidden" || code !== "";
  const asks = wanted && !code;
  return (
    <>
      {wanted && (
        <div className="space-y-1.5">
          <label className="block text-[12.5px] text-muted">
            {t("connect.code")}
            <input
              type="text"
              autoComplete="one-time-code"
              spellCheck={false}
              value={code}
              onChange={(event) => onChange(event.target.value)}
              className={`${field} font-mono`}
            />
          </label>
          <CommandLine text="thole login" />
        </div>
      )}
      {problem && (
        <Notice tone="bad" title={asks ? t("connect.stepUp") : problem.message}>
          {asks ? undefined : problem.hint}
        </Notice>
      )}
    </>
  );
}
