import { type FormEvent, useState } from "react";
import { type Problem, request, uuid } from "../api/http";
import type { ApiToken, ApiTokens } from "../api/types";
import { maybe, t } from "../i18n";
import "../i18n/later";
import { Failed, Section, useLoad } from "../pages/page";
import { login } from "../state/account";
import { useStore } from "../state/store";
import { Badge, Button, Choice, CommandLine, Notice } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { ago, moment } from "../ui/time";
import { succeeded } from "../ui/toast";
import { codeOf, ConfirmCode, field } from "./confirm-code";

const scopes = ["read", "act", "admin", "jobs"] as const;
const lives = [1, 7, 30, 90, 365] as const;

/** Tokens are what scripts prove themselves with. A new one is shown once. */
export function Tokens() {
  const mayChange = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  return mayChange ? <List /> : <Notice>{t("settings.readOnly")}</Notice>;
}

function List() {
  const { value, problem, reload } = useLoad<ApiTokens>("/auth/tokens");
  const [made, setMade] = useState<ApiToken>();
  return (
    <>
      <Section title={t("tokens.make")}>
        {made?.token ? (
          <div className="space-y-2" role="status">
            <Notice tone="ok" title={t("tokens.made", { name: made.name })}>
              {t("tokens.once")}
            </Notice>
            <CommandLine text={made.token} />
            <Button onClick={() => setMade(undefined)}>{t("tokens.another")}</Button>
          </div>
        ) : (
          <Make
            onMade={(token) => {
              setMade(token);
              reload();
            }}
          />
        )}
      </Section>
      <Section title={t("tokens.title")}>
        {problem && <Failed problem={problem} reload={reload} />}
        {value?.items.length === 0 && <p className="text-[13px] text-muted">{t("tokens.none")}</p>}
        {value && value.items.length > 0 && (
          <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
            {value.items.map((it) => (
              <Token key={it.id} token={it} onChange={reload} />
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}

function Make({ onMade }: { onMade: (token: ApiToken) => void }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<string>("act");
  const [days, setDays] = useState("90");
  const [code, setCode] = useState("");
  const [key] = useState(uuid);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const body = { name: name.trim(), scope, expires_in: Number(days) * 86_400, ...codeOf(code) };
      onMade((await request<ApiToken>("POST", "/auth/tokens", { key, body, strange: true })).data);
    } catch (error) {
      setProblem(error as Problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form aria-label={t("tokens.make")} onSubmit={(event) => void submit(event)} className="space-y-3 rounded-xl border border-line bg-surface p-4">
      <label className="block text-[12.5px] text-muted">
        {t("tokens.name")}
        <input required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} className={field} />
      </label>
      <div className="flex flex-wrap gap-3">
        <div className="text-[12.5px] text-muted">
          <p className="mb-1">{t("tokens.scope")}</p>
          <Choice label={t("tokens.scope")} value={scope} onChange={setScope} options={scopes.map((it) => ({ value: it, text: t(`scopes.${it}`) }))} />
        </div>
        <div className="text-[12.5px] text-muted">
          <p className="mb-1">{t("tokens.life")}</p>
          <Choice
            label={t("tokens.life")}
            value={days}
            onChange={setDays}
            options={lives.map((it) => ({ value: String(it), text: t(it === 1 ? "tokens.day" : "usage.days", { n: it }) }))}
          />
        </div>
      </div>
      <ConfirmCode problem={problem} code={code} onChange={setCode} />
      <Button type="submit" look="primary" disabled={busy || !name.trim()}>
        {t("tokens.create")}
      </Button>
    </form>
  );
}

function Token({ token, onChange }: { token: ApiToken; onChange: () => void }) {
  const [asking, setAsking] = useState(false);
  const revoke = async () => {
    if (await succeeded(request("DELETE", `/auth/tokens/${token.id}`))) onChange();
    setAsking(false);
  };
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3.5 py-2.5 text-[13px]">
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium wrap-anywhere">{token.name}</p>
        <p className="text-[12px] text-muted">
          {token.last_used_at ? t("connections.used", { time: ago(token.last_used_at) }) : t("connections.unused")}
          {" · "}
          {token.expires_at ? t("settings.until", { time: moment(token.expires_at) }) : t("tokens.never")}
        </p>
        {token.warning && <p className="text-[12px] text-warn wrap-anywhere">{token.warning}</p>}
      </div>
      <Badge>{maybe("scopes", token.scope)}</Badge>
      <Button look="danger" aria-label={t("tokens.revokeNamed", { name: token.name })} onClick={() => setAsking(true)}>
        {t("connections.revoke")}
      </Button>
      <Confirm open={asking} label={t("tokens.revokeTitle")} onClose={() => setAsking(false)}>
        <h2 className="text-[15px] font-semibold">{t("tokens.revokeTitle")}</h2>
        <p className="mt-1 text-[13px] text-muted wrap-anywhere">{t("tokens.revokeText", { name: token.name })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t("common.cancel")}</Button>
          <Button look="danger" onClick={() => void revoke()}>
            {t("connections.revoke")}
          </Button>
        </div>
      </Confirm>
    </li>
  );
}
