import { useState } from "react";
import type { OwnConfig, Provider } from "../api/types";
import { maybe, t } from "../i18n";
import "../i18n/later";
import { Failed, Section, useLoad } from "../pages/page";
import { providers, titleOf } from "../state/providers";
import { useStore } from "../state/store";
import { Badge, CommandLine, Notice, type Tone } from "../ui/controls";
import { Spinner } from "../ui/icons";
import { Link } from "../ui/link";

const own = ["codex", "claude", "opencode"];
const tones: Record<string, Tone> = { passed: "ok", mapped: "accent", refused: "neutral" };

/** Agents shows what each agent would have of the user's own: MCP servers, instructions, skills. Nothing is changed here. */
export function Agents() {
  const list = useStore(providers)?.items.filter((it) => own.includes(it.name));
  return (
    <>
      <Section title={t("agents.logins")}>
        <p className="text-[13px]">
          {t("agents.loginsText")} <Link to={{ page: "connections" }}>{t("connections.title")}</Link>
        </p>
      </Section>
      {list?.map((it) => (
        <Agent key={it.name} agent={it} />
      ))}
    </>
  );
}

function Agent({ agent }: { agent: Provider }) {
  const { value, problem, reload } = useLoad<OwnConfig>(`/providers/${agent.name}/config`);
  return (
    <Section
      title={titleOf(agent)}
      action={<Badge tone={agent.available ? "ok" : "neutral"}>{t(agent.available ? "agents.here" : "agents.missing")}</Badge>}
    >
      <div className="space-y-4 rounded-xl border border-line bg-surface p-4">
        {problem && problem.status !== 404 && <Failed problem={problem} reload={reload} />}
        {!value && !problem && <Spinner />}
        {(value?.off || problem?.status === 404) && <p className="text-[13px] text-muted">{t("agents.off")}</p>}
        {value && !value.off && <Found agent={agent} config={value} />}
      </div>
    </Section>
  );
}

const instructions = /(?:^|\/)(?:AGENTS(?:\.override)?|CLAUDE(?:\.local)?)\.md$/i;

function Found({ agent, config }: { agent: Provider; config: OwnConfig }) {
  const [all, setAll] = useState(false);
  const texts = config.keys.filter((it) => instructions.test(it.from) && !it.key);
  const refused = config.keys.filter((it) => it.fate === "refused");
  return (
    <>
      <Part title={t("agents.servers")} none={t("agents.noServers")} empty={config.servers.length === 0}>
        {config.servers.map((it) => (
          <li key={it.name} className="flex flex-wrap items-center gap-x-2">
            <span className="font-medium wrap-anywhere">{it.name}</span>
            <span className="min-w-0 flex-1 text-[12px] text-muted wrap-anywhere">{it.origin ?? t("agents.inBox")}</span>
            {it.off && <Badge>{t("agents.serverOff")}</Badge>}
          </li>
        ))}
      </Part>
      <Part title={t("agents.instructions")} none={t("agents.noInstructions")} empty={texts.length === 0}>
        {texts.map((it) => (
          <li key={it.from} className="flex flex-wrap items-center gap-x-2">
            <code className="min-w-0 flex-1 font-mono text-[12px] wrap-anywhere">{it.from}</code>
            <Badge tone={tones[it.fate]}>{maybe("fate", it.fate)}</Badge>
          </li>
        ))}
      </Part>
      <p className="text-[12.5px] text-muted">{t("agents.project")}</p>
      {config.skills.length > 0 && (
        <Part title={t("agents.skills")} none="" empty={false}>
          <li className="wrap-anywhere">{config.skills.join(", ")}</li>
        </Part>
      )}
      {refused.length > 0 && (
        <details open={all} onToggle={(event) => setAll(event.currentTarget.open)}>
          <summary className="cursor-pointer text-[12.5px] font-medium text-muted underline underline-offset-2">
            {t("agents.refused", { n: refused.length })}
          </summary>
          <ul className="mt-2 space-y-1 text-[12px]">
            {refused.map((it) => (
              <li key={`${it.from} ${it.key}`} className="wrap-anywhere">
                <code className="font-mono">{[it.from, it.key].filter(Boolean).join(" · ")}</code>
                {it.why && <span className="block text-muted">{it.why}</span>}
              </li>
            ))}
          </ul>
        </details>
      )}
      {config.keys.length === 0 && <Notice>{t("agents.nothing", { name: titleOf(agent) })}</Notice>}
      <CommandLine text={`thole provider config ${agent.name}`} />
    </>
  );
}

function Part({ title, none, empty, children }: { title: string; none: string; empty: boolean; children: React.ReactNode }) {
  return (
    <div>
      <h3 className="mb-1 text-[12px] font-medium text-faint">{title}</h3>
      {empty ? <p className="text-[13px] text-muted">{none}</p> : <ul className="space-y-1 text-[13px]">{children}</ul>}
    </div>
  );
}
