import type { Provider, Session } from "../api/types";
import { t } from "../i18n";
import { prefs, setPrefs } from "../state/prefs";
import { choice, providerNamed, providers, titleOf } from "../state/providers";
import { go } from "../state/route";
import { editSession } from "../state/sessions";
import { useStore } from "../state/store";
import { Choice } from "../ui/controls";
import { report, say } from "../ui/toast";
import { useConversation, useSide } from "./context";
import { SourcePicker } from "./source-picker";

export interface Selection {
  provider?: Provider;
  model: string;
  effort: string;
  profile: string;
}

/** useSelection is what the next message runs with: the session's settings, or this browser's for a new chat. */
export function useSelection(): [Selection, (change: { provider?: string; model?: string; effort?: string; profile?: string }) => void] {
  const conversation = useConversation();
  const session = useSide((side) => side.session);
  const wanted = useStore(prefs);
  const list = useStore(providers);
  const effort = useStore(conversation.box, (box) => box.effort ?? "");
  if (!session) {
    const provider = choice(list);
    const selection = {
      provider,
      model: provider?.models?.some((it) => it.id === wanted.model) ? wanted.model! : "",
      effort,
      profile: profileOf(provider, wanted.profile),
    };
    return [
      selection,
      (change) => {
        setPrefs({
          ...(change.provider && { provider: change.provider, model: undefined }),
          ...(change.model !== undefined && { model: change.model }),
          ...(change.profile && { profile: change.profile }),
        });
        if (change.effort !== undefined) conversation.box.set((old) => ({ ...old, effort: change.effort || undefined }));
      },
    ];
  }
  const provider = providerNamed(session.provider);
  return [
    { provider, model: session.model ?? "", effort: session.effort ?? "", profile: profileOf(provider, session.execution_profile) },
    (change) => {
      // What was said is in the agent's own memory: another agent begins a chat of its own.
      if (change.provider && session.runs > 0) {
        setPrefs({ provider: change.provider, model: undefined, profile: session.execution_profile || wanted.profile });
        say(t("provider.newChat"));
        return go({ page: "new" });
      }
      const { profile, ...rest } = change;
      const next = { ...rest, ...(profile && { execution_profile: profile }), ...(change.provider && { model: "", effort: "" }) };
      const before = conversation.settings;
      const show = (values: Partial<Session>) => conversation.side.set((old) => ({ ...old, session: old.session && { ...old.session, ...values } }));
      show(next);
      conversation.settings = { ...before, ...rest, ...(profile && { executionProfile: profile }) };
      editSession(session.id, next).then(
        (edited) => {
          conversation.side.set((old) => ({ ...old, session: { ...edited, active_run_id: old.session?.active_run_id } }));
          setPrefs({ ...(change.provider && { provider: change.provider }), ...(change.model && { model: change.model }), ...(profile && { profile }) });
        },
        (error: unknown) => {
          const { provider, model, effort, execution_profile } = session;
          show({ provider, model, effort, execution_profile });
          conversation.settings = before;
          report(error);
        },
      );
    },
  ];
}

/** profileOf is the permission that was chosen, with every agent; one that does not know it asks before it acts. */
export const profileOf = (provider: Provider | undefined, wanted: string | undefined): string => {
  const profiles = provider?.profiles ?? [];
  if (profiles.length === 0) return wanted ?? "";
  if (wanted && provider?.native_modes?.some((it) => it.mode === wanted)) return wanted;
  const found = profiles.find((it) => it.profile === wanted) ?? profiles.find((it) => wanted && it.native === wanted);
  return (found ?? profiles.find((it) => it.profile === "ask") ?? profiles[0]!).profile;
};

/** SettingsBar chooses who answers: agent, model, effort, and for a new chat what it works on. */
export function SettingsBar() {
  const list = useStore(providers);
  const draft = useSide((side) => side.session === undefined);
  const dir = useSide((side) => side.session?.dir);
  const [selection, select] = useSelection();
  const { provider } = selection;
  const models = provider?.models ?? [];
  const efforts = (models.find((it) => it.id === selection.model) ?? models.find((it) => it.default))?.efforts ?? [];
  const quiet = "h-7 border-transparent bg-transparent text-[12.5px] text-muted hover:bg-hover hover:text-ink";
  return (
    <div className="mt-1.5 flex min-h-7 flex-wrap items-center gap-1 text-[12.5px]">
      {list && (
        <Choice
          label={t("provider.label")}
          className={`${quiet} max-w-40`}
          value={provider?.name ?? ""}
          onChange={(name) => select({ provider: name })}
          options={[
            ...(provider ? [] : [{ value: "", text: t("provider.label") }]),
            ...list.items.map((it) => ({ value: it.name, text: titleOf(it), disabled: !it.available })),
          ]}
        />
      )}
      {models.length > 0 && (
        <Choice
          label={t("model.label")}
          className={`${quiet} max-w-48`}
          value={selection.model}
          onChange={(model) => select({ model })}
          options={[
            { value: "", text: t("model.default") },
            ...models.map((it) => ({ value: it.id, text: it.title || it.id })),
            ...(selection.model && !models.some((it) => it.id === selection.model) ? [{ value: selection.model, text: selection.model }] : []),
          ]}
        />
      )}
      {efforts.length > 0 && (
        <Choice
          label={t("effort.label")}
          className={`${quiet} max-w-36`}
          value={selection.effort}
          onChange={(effort) => select({ effort })}
          options={[{ value: "", text: t("effort.default") }, ...efforts.map((it) => ({ value: it, text: it }))]}
        />
      )}
      {draft ? (
        <SourcePicker />
      ) : (
        dir && (
          <span className="min-w-0 flex-1 truncate px-2 text-left font-mono text-[11.5px] text-faint [direction:rtl]" title={dir}>
            <bdi>{dir}</bdi>
          </span>
        )
      )}
    </div>
  );
}
