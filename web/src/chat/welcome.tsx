import type { Provider } from "../api/types";
import { t, type Key } from "../i18n";
import { translatedLine } from "../i18n/phrases";
import { loadProviders, providers, titleOf } from "../state/providers";
import { isProject } from "../state/source";
import { useStore } from "../state/store";
import { Badge, Button, CommandLine, Notice } from "../ui/controls";
import { tried } from "../ui/toast";
import { useSource } from "./source-picker";

// What can be asked about a project, and where there is none.
const prompts = { project: ["tour", "test", "fix", "plan"], none: ["make", "page"] } as const;

/** Welcome fills an empty chat: what one could ask, and which agents can answer. */
export function Welcome({ onPick }: { onPick: (text: string) => void }) {
  const list = useStore(providers);
  const [chosen] = useSource();
  const ready = list?.items.some((it) => it.available);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto w-full max-w-3xl px-3 py-8 md:px-6 md:py-14">
        <h1 className="mb-5 text-balance text-[22px] font-semibold tracking-tight">{t("welcome.title")}</h1>
        <ul className="grid gap-2 sm:grid-cols-2">
          {prompts[isProject(chosen) ? "project" : "none"].map((name) => (
            <li key={name}>
              <button
                type="button"
                onClick={() => onPick(t(`prompt.${name}.text` as Key))}
                className="h-full w-full rounded-xl border border-line bg-surface px-3.5 py-2.5 text-left hover:border-line-strong hover:bg-hover"
              >
                <span className="block font-medium">{t(`prompt.${name}` as Key)}</span>
                <span className="line-clamp-2 text-[12.5px] text-muted">{t(`prompt.${name}.text` as Key)}</span>
              </button>
            </li>
          ))}
        </ul>
        {list && (
          <section aria-label={t("welcome.agents")} className="mt-9">
            <div className="mb-2 flex items-center justify-between">
              <h2 className="text-[13px] font-semibold">{t("welcome.agents")}</h2>
              <Button look="quiet" onClick={() => void tried(loadProviders())}>
                {t("welcome.check")}
              </Button>
            </div>
            {!ready && (
              <div className="mb-3">
                <Notice tone="warn">{t("welcome.none")}</Notice>
              </div>
            )}
            <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
              {list.items
                .toSorted((a, b) => Number(b.available) - Number(a.available))
                .map((it) => (
                  <Agent key={it.name} provider={it} />
                ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

function Agent({ provider }: { provider: Provider }) {
  // The command that installs it says the rest.
  const problem = provider.fix && !provider.version ? t("welcome.notInstalled") : provider.problem && translatedLine(provider.problem);
  return (
    <li className="px-3.5 py-2.5">
      <div className="flex items-center gap-2">
        <span className="font-medium">{titleOf(provider)}</span>
        {provider.version && <span className="min-w-0 truncate text-[12.5px] text-faint">{provider.version}</span>}
        <span className="flex-1" />
        <Badge tone={provider.available ? "ok" : "warn"}>{provider.available ? t("welcome.ready") : t("welcome.missing")}</Badge>
      </div>
      {!provider.available && problem && <p className="mt-0.5 text-[13px] text-muted wrap-anywhere">{problem}</p>}
      {!provider.available && provider.fix && (
        <div className="mt-1.5">
          <CommandLine text={provider.fix} />
        </div>
      )}
    </li>
  );
}
