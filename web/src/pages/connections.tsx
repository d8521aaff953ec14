import { useState } from "react";
import { post, request } from "../api/http";
import type { Provider, SecretItem, SecretItems, SecretTested } from "../api/types";
import { maybe, t } from "../i18n";
import { login } from "../state/account";
import { providers } from "../state/providers";
import { useStore } from "../state/store";
import { Badge, Button, Notice } from "../ui/controls";
import { Confirm } from "../ui/dialog";
import { ago, moment } from "../ui/time";
import { say, succeeded, tried } from "../ui/toast";
import { Connect } from "./connect";
import { Failed, Page, Section, useLoad } from "./page";

/** nearest is the order in which the server looks for a credential. */
const nearest = ["user", "project", "app", "platform"];

/** credentialOf is the secret that an agent's model calls are paid with: the nearest one that is not revoked. */
export function credentialOf(items: SecretItem[], agent: string): SecretItem | undefined {
  return items
    .filter((it) => it.kind === "provider_auth" && it.provider === agent && it.state !== "revoked")
    .toSorted((a, b) => nearest.indexOf(a.owner) - nearest.indexOf(b.owner))[0];
}

/** Connections shows which login each agent uses and manages the secrets they need. Values go in and never come out. */
export default function Connections() {
  const agents = useStore(providers)?.items ?? [];
  const mayChange = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  const secrets = useLoad<SecretItems>("/vault/items");
  const items = secrets.value?.items ?? [];
  return (
    <Page title={t("connections.title")} about={t("connections.about")}>
      {secrets.problem && <Failed problem={secrets.problem} reload={secrets.reload} />}
      {secrets.value?.locked && (
        <div className="mb-6">
          <Notice tone="warn" title={secrets.value.locked}>
            {secrets.value.hint}
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
              {agents
                .filter((it) => it.name !== "test")
                .map((it) => (
                  <Agent key={it.name} agent={it} item={credentialOf(items, it.name)} mayChange={mayChange && !secrets.value?.locked} onChange={secrets.reload} />
                ))}
            </ul>
          </Section>
          <Section title={t("connections.secrets")}>
            {items.length === 0 ? (
              <p className="text-[13px] text-muted">{t("connections.none")}</p>
            ) : (
              <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
                {items.map((it) => (
                  <Secret key={it.id} item={it} mayChange={mayChange} onChange={secrets.reload} />
                ))}
              </ul>
            )}
          </Section>
        </>
      )}
    </Page>
  );
}

function Agent({ agent, item, mayChange, onChange }: { agent: Provider; item?: SecretItem; mayChange: boolean; onChange: () => void }) {
  const [open, setOpen] = useState(false);
  const title = agent.title || agent.name;
  return (
    <li className="px-3.5 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-52">
          <p className="font-medium">{title}</p>
          <p className="text-[12.5px] text-muted wrap-anywhere">
            {item ? t("connections.uses", { name: item.name, owner: maybe("owner", item.owner) }) : t("connections.machine")}
          </p>
          {!agent.available && agent.problem && <p className="text-[12.5px] text-warn wrap-anywhere">{agent.problem}</p>}
        </div>
        <Status item={item} />
        {mayChange && (
          <Button onClick={() => setOpen(!open)} aria-expanded={open}>
            {item ? t("connections.replace") : t("connections.connect")}
          </Button>
        )}
      </div>
      {open && (
        <Connect
          agent={agent.name}
          title={title}
          item={item?.owner === "user" ? item : undefined}
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
  if (!item) return <Badge>{t("connections.unmanaged")}</Badge>;
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
          {[maybe("kind", item.kind), item.provider, maybe("owner", item.owner)].filter(Boolean).join(" · ")} · <span title={t("connections.fingerprint")}><span className="sr-only">{t("connections.fingerprint")} </span><code>{item.fingerprint}</code></span>
        </p>
        <p className="text-[12px] text-muted">{item.last_used_at ? <time dateTime={item.last_used_at} title={moment(item.last_used_at)}>{t("connections.used", { time: ago(item.last_used_at) })}</time> : t("connections.unused")}</p>
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
