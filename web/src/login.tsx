import { type FormEvent, useEffect, useState } from "react";
import { get, type Problem } from "./api/http";
import type { Ways } from "./api/types";
import { t } from "./i18n";
import { logIn } from "./state/account";
import { Button, CommandLine, Notice } from "./ui/controls";
import { Mark } from "./ui/icons";

const linkLook = "my-3 flex h-9 w-full items-center justify-center rounded-lg text-[13px] font-medium";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [ways, setWays] = useState<Ways>();
  useEffect(() => void get<Ways>("/auth/ways").then(setWays, () => undefined), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    logIn(token.trim()).catch(setProblem);
  };
  return (
    <main className="flex h-full items-center justify-center overflow-y-auto p-4">
      <div className="w-full max-w-sm rounded-2xl border border-line bg-surface p-6">
        <Mark className="mb-4 size-9" />
        <h1 className="text-[18px] font-semibold">{t("login.title")}</h1>
        {ways?.sso && (
          <a href={`/auth/oidc/start?next=${encodeURIComponent(location.pathname)}`} className={`${linkLook} bg-accent text-accent-ink`}>
            {t("login.sso", { name: ways.sso })}
          </a>
        )}
        {ways?.password && (
          <a href="/auth/account" className={`${linkLook} border border-line-strong`}>
            {t("login.password")}
          </a>
        )}
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
