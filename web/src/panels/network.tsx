import { useCallback, useEffect, useState } from "react";
import { get, request } from "../api/http";
import type { Network, Port, Ports, Traffic } from "../api/types";
import { useSide } from "../chat/context";
import { listen } from "../events/client";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { Badge, Button, Choice } from "../ui/controls";
import { count } from "../ui/time";
import { tried } from "../ui/toast";

const strictness = ["none", "gateway", "list", "open"];
const heading = "mb-1.5 text-[11.5px] font-medium text-faint";

/** useAgain reads something of the session now and whenever its run or network changed. */
function useAgain<T>(path: string): [T | undefined, () => void] {
  const session = useSide((side) => side.session?.id);
  const ended = useSide((side) => side.run?.outcome);
  const [value, setValue] = useState<T>();
  const reload = useCallback(() => {
    if (!session) return setValue(undefined);
    get<T>(`/sessions/${session}/${path}`)
      .then(setValue)
      .catch(() => {}); // the next change asks again
  }, [session, path]);
  useEffect(() => {
    reload();
    return listen({ ready: reload, event: (event) => event.session_id === session && ["network.updated", "session.updated"].includes(event.type) && reload() });
  }, [reload, session, ended]);
  return [value, reload];
}

const targetOf = (it: Traffic): string => (it.host ? (it.port ? `${it.host}:${it.port}` : it.host) : t("network.others"));

/** NetworkReach shows what the current run reached and was refused, and what the agent may reach at all. */
export function NetworkReach() {
  const session = useSide((side) => side.session?.id);
  const run = useSide((side) => side.run?.id);
  const [network, reload] = useAgain<Network>("network");
  if (!session || !network) return null;
  const traffic = network.items.filter((it) => it.run_id === run).flatMap((it) => it.traffic);
  const ceiling = network.ceiling ?? "open";
  const policy = network.policy ?? ceiling;
  const choices = strictness.filter((it) => strictness.indexOf(it) <= strictness.indexOf(ceiling) && (it !== "list" || it === policy || it === ceiling));
  const set = (value: string) =>
    void tried(request("PATCH", `/sessions/${session}`, { body: { network: { policy: value === ceiling ? "default" : value } } }).then(reload));
  return (
    <section aria-label={t("network.title")}>
      <div className="mb-1.5 flex items-center justify-between gap-2">
        <h3 className="text-[11.5px] font-medium text-faint">{t("network.title")}</h3>
        <Choice label={t("network.policy")} value={policy} options={choices.map((it) => ({ value: it, text: t(`network.${it}` as Key) }))} onChange={set} />
      </div>
      {policy === "list" && network.allow && <p className="mb-1.5 text-[12px] text-muted wrap-anywhere">{network.allow.join(", ")}</p>}
      {traffic.length === 0 ? (
        <p className="text-[12.5px] text-muted">{t("network.nothing")}</p>
      ) : (
        <ul className="space-y-1.5">
          {traffic.map((it) => (
            <li key={`${it.host}:${it.port} ${it.verdict}`} className="rounded-lg bg-raised px-2.5 py-1.5">
              <div className="flex items-start gap-2">
                <span className="min-w-0 flex-1 font-mono text-[12px] wrap-anywhere">{targetOf(it)}</span>
                <Badge tone={it.verdict === "allowed" ? "ok" : it.verdict === "refused" ? "bad" : "warn"}>{t(`network.verdict.${it.verdict}` as Key)}</Badge>
              </div>
              <p className="text-[12px] text-muted wrap-anywhere">
                {it.verdict === "allowed"
                  ? t("network.moved", { n: it.connections, sent: count(it.sent), received: count(it.received) })
                  : `${it.connections}× ${it.why ?? ""}`}
              </p>
            </li>
          ))}
        </ul>
      )}
      {network.models && network.models.length > 0 && (
        <p className="mt-1.5 text-[12px] text-muted wrap-anywhere">
          {t("network.models")} {network.models.join(", ")}
        </p>
      )}
    </section>
  );
}

/** OpenPorts opens web servers of the agent, each on an origin of its own. */
export function OpenPorts() {
  const session = useSide((side) => side.session?.id);
  const [ports, reload] = useAgain<Ports>("ports");
  const [number, setNumber] = useState("");
  const [fresh, setFresh] = useState<Port>();
  if (!session) return null;
  const open = (port: number) =>
    void tried(
      request<Port>("POST", `/sessions/${session}/ports`, { body: { port } }).then(({ data }) => {
        setFresh(data);
        setNumber("");
        reload();
      }),
    );
  const close = (port: number) =>
    void tried(
      request("DELETE", `/sessions/${session}/ports/${port}`).then(() => {
        setFresh(undefined);
        reload();
      }),
    );
  return (
    <section aria-label={t("ports.title")}>
      <h3 className={heading}>{t("ports.title")}</h3>
      <p className="mb-2 text-[12px] text-muted">{t("ports.about")}</p>
      <form
        className="flex gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          if (Number(number)) open(Number(number));
        }}
      >
        <input
          aria-label={t("ports.number")}
          placeholder="5173"
          inputMode="numeric"
          pattern="[0-9]{1,5}"
          required
          value={number}
          onChange={(event) => setNumber(event.target.value)}
          className="h-8 w-24 min-w-0 rounded-lg border border-line bg-surface px-2 text-[13px] text-ink placeholder:text-faint"
        />
        <Button type="submit">{t("ports.open")}</Button>
      </form>
      <ul className="mt-2 space-y-1.5">
        {ports?.items.map((it) => (
          <li key={it.id} className="flex flex-wrap items-center gap-2 rounded-lg bg-raised px-2.5 py-1.5">
            <span className="min-w-0 flex-1 font-mono text-[12px]">{it.port}</span>
            {fresh?.id === it.id && fresh.url ? (
              <a
                href={fresh.url}
                target="_blank"
                rel="noopener noreferrer"
                onClick={() => setFresh(undefined)}
                className="text-[13px] font-medium text-accent underline"
              >
                {t("ports.show")}
              </a>
            ) : (
              <Button look="quiet" onClick={() => open(it.port)}>
                {t("ports.again")}
              </Button>
            )}
            <Button look="quiet" onClick={() => close(it.port)}>
              {t("ports.close")}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
