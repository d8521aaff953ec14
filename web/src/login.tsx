import { type FormEvent, useState } from "react";
import type { Problem } from "./api/http";
import { t } from "./i18n";
import { logIn } from "./state/account";
import { Button, CommandLine, Notice } from "./ui/controls";
import { Mark } from "./ui/icons";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    logIn(token.trim()).catch(setProblem);
  };
  return (
    <main className="flex h-full items-center justify-center overflow-y-auto p-4">
      <div className="w-full max-w-sm rounded-2xl border border-line bg-surface p-6">
        <Mark className="mb-4 size-9" />
        <h1 className="text-[18px] font-semibold">{t("login.title")}</h1>
        <p className="mb-2 mt-1 text-[13px] text-muted">{t("login.link")}</p>
        <CommandLine text="thole login" />
        <form onSubmit={submit} className="mt-5 space-y-2">
          <label className="block text-[13px]">
            <span className="mb-1 block font-medium">{t("login.token")}</span>
            <input
              type="password"
              autoComplete="current-password"
              aria-label={t("login.tokenLabel")}
              placeholder="thole_…"
              value={token}
              onChange={(event) => setToken(event.target.value)}
              className="h-9 w-full rounded-lg border border-line-strong bg-ground px-3 font-mono text-[13px] placeholder:text-faint"
            />
          </label>
          {problem && (
            <Notice tone="bad">
              {problem.message}
              {problem.hint && <p>{problem.hint}</p>}
            </Notice>
          )}
          <Button type="submit" look="primary" className="h-9 w-full" disabled={!token.trim()}>
            {t("login.submit")}
          </Button>
        </form>
      </div>
    </main>
  );
}
