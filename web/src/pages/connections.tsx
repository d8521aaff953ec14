import { useState } from "react";
import { get, post, request } from "../api/http";
import type { Connection, Connections as ConnectionList, SecretItem, SecretItems, SecretTested } from "../api/types";
import { maybe, t } from "../i18n";
import "../i18n/later";
import { translatedLine } from "../i18n/phrases";
import { login } from "../state/account";
import { titleOf } from "../state/providers";
import { useStore } from "../state/store";
import { Badge, Button, Notice } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { ago, moment } from "../ui/time";
import { say, succeeded, tried } from "../ui/toast";
import { Connect } from "./connect";
import { originOf } from "./origin";
import { Failed, Page, Section, useLoad } from "./page";

/** Connections shows which login each agent uses and manages the secrets they need. Values go in and never come out. */
export default function Connections() {
  const agents = useLoad<ConnectionList>("/connections");
  const mayChange = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  const secrets = useLoad<SecretItems>("/vault/items");
  const items = secrets.value?.items ?? [];
  const problem = secrets.problem ?? agents.problem;
  const [checked, setChecked] = useState<ConnectionList>();
  const [checking, setChecking] = useState(false);
  const check = async () => {
    setChecking(true);
    setChecked(await tried(get<ConnectionList>("/connections?check=true")));
    setChecking(false);
  };
  const reload = () => {
    setChecked(undefined);
    secrets.reload();
    agents.reload();
  };
  return (
    <Page title={t("connections.title")} about={t("connections.about")}>
      {problem && <Failed problem={problem} reload={reload} />}
      {secrets.value?.locked && (
        <div className="mb-6">
          <Notice tone="warn" title={translatedLine(secrets.value.locked)}>
            {secrets.value.hint && translatedLine(secrets.value.hint)}
          </Notice>
        </div>
      )}
      {!mayChange && (
        <div className="mb-6">
          <Notice>{t("connections.readOnly")}</Notice>
        </div>
      )}
      {secrets.value && (
        <>
          <Section title={t("connections.agents")}>
            <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
              {(checked ?? agents.value)?.items.map((it) => (
                <Agent key={it.provider} agent={it} items={items} mayChange={mayChange && !secrets.value?.locked} onChange={reload} />
              ))}
            </ul>
            <div className="mt-2">
              <Button look="quiet" disabled={checking} onClick={() => void check()}>
                {t(checking ? "connections.checking" : "connections.check")}
              </Button>
            </div>
          </Section>
          <Section title={t("connections.secrets")}>
            {items.length === 0 ? (
              <p className="text-[13px] text-muted">{t("connections.none")}</p>
            ) : (
              <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
                {items.map((it) => (
                  <Secret key={it.id} item={it} mayChange={mayChange} onChange={reload} />
                ))}
              </ul>
            )}
          </Section>
        </>
      )}
    </Page>
  );
}

function Agent({ agent, items, mayChange, onChange }: { agent: Connection; items: SecretItem[]; mayChange: boolean; onChange: () => void }) {
  const [open, setOpen] = useState(false);
  const title = titleOf({ name: agent.provider, title: agent.title });
  const own = items.find((it) => it.owner === "user" && it.kind === "provider_auth" && it.provider === agent.provider && it.state !== "revoked");
  return (
    <li className="px-3.5 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-52">
          <p className="font-medium">{title}</p>
          <ul className="text-[12.5px] text-muted wrap-anywhere">
            {agent.sources.map((it) => (
              <li key={`${it.upstream} ${it.origin}`} className="flex flex-wrap items-center gap-x-2">
                <span>{t("connections.uses", { service: it.host || it.upstream, origin: originOf(it.origin) })}</span>
                {it.taken && (
                  <span title={it.note}>
                    <Badge tone={it.taken === "yes" ? "ok" : "warn"}>{maybe("taken", it.taken)}</Badge>
                  </span>
                )}
                {it.item_id && <Status item={items.find((item) => item.id === it.item_id)} />}
              </li>
            ))}
          </ul>
          {agent.problem && (
            <p className="text-[12.5px] text-warn wrap-anywhere">
              {translatedLine(agent.problem)}
              {agent.hint && <span className="block text-muted">{translatedLine(agent.hint)}</span>}
            </p>
          )}
        </div>
        {mayChange && (
          <Button onClick={() => setOpen(!open)} aria-expanded={open}>
            {own ? t("connections.replace") : t("connections.connect")}
          </Button>
        )}
      </div>
      {open && (
        <Connect
          agent={agent.provider}
          title={title}
          item={own}
          onDone={() => {
            setOpen(false);
            onChange();
          }}
        />
      )}
    </li>
  );
}

function Status({ item }: { item?: SecretItem }) {
  if (!item) return null; // of another owner: not shown, but used
  return <Badge tone={item.state === "active" ? "ok" : "warn"}>{maybe("secret", item.state)}</Badge>;
}

function Secret({ item, mayChange, onChange }: { item: SecretItem; mayChange: boolean; onChange: () => void }) {
  const [asking, setAsking] = useState(false);
  const revoke = async () => {
    if (await succeeded(request("DELETE", `/vault/items/${item.id}`, { etag: `"${item.etag}"` }))) onChange();
    setAsking(false);
  };
  const test = async () => {
    const found = await tried(post<SecretTested>(`/vault/items/${item.id}/test`));
    if (found) say(found.found);
    onChange();
  };
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3.5 py-2.5 text-[13px]">
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium wrap-anywhere">{item.name}</p>
        <p className="text-[12px] text-muted wrap-anywhere">
          {[maybe("kind", item.kind), item.provider, maybe("owner", item.owner)].filter(Boolean).join(" · ")} ·{" "}
          <span title={t("connections.fingerprint")}>
            <span className="sr-only">{t("connections.fingerprint")} </span>
            <code>{item.fingerprint}</code>
          </span>
        </p>
        <p className="text-[12px] text-muted">
          {item.last_used_at ? (
            <time dateTime={item.last_used_at} title={moment(item.last_used_at)}>
              {t("connections.used", { time: ago(item.last_used_at) })}
            </time>
          ) : (
            t("connections.unused")
          )}
        </p>
      </div>
      <Status item={item} />
      <Button look="quiet" onClick={() => void test()}>
        {t("connections.test")}
      </Button>
      {mayChange && (
        <Button look="danger" onClick={() => setAsking(true)}>
          {t("connections.revoke")}
        </Button>
      )}
      <Confirm open={asking} label={t("connections.revokeTitle")} onClose={() => setAsking(false)}>
        <h2 className="mb-1 text-[15px] font-semibold">{t("connections.revokeTitle")}</h2>
        <p className="mb-4 text-muted wrap-anywhere">{t("connections.revokeText", { name: item.name })}</p>
        <div className="flex justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t("common.cancel")}</Button>
          <Button look="danger" onClick={() => void revoke()}>
            {t("connections.revoke")}
          </Button>
        </div>
      </Confirm>
    </li>
  );
}
