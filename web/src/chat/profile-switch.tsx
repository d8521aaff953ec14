import { type Key, maybe, t } from "../i18n";
import { titleOf } from "../state/providers";
import { en } from "../i18n/en";
import { Choice } from "../ui/controls";
import { useSelection } from "./settings-bar";

/** nameOf is what a mode of an agent's own is called; one that is new here goes by the server's name. */
const nameOf = (it: { mode: string; title: string }): string => (`mode.${it.mode}` in en ? t(`mode.${it.mode}` as Key) : it.title);

/** ProfileSwitch says how much the agent may do; which profiles there are depends on the agent. */
export function ProfileSwitch() {
  const [selection, select] = useSelection();
  const profiles = selection.provider?.profiles ?? [];
  if (profiles.length === 0) return null;
  const native = selection.provider?.native_modes ?? [];
  const own = native.map((it) => ({ value: it.mode, text: nameOf(it) }));
  const about = (it: { profile: string; native?: string }) =>
    [maybe("profile", `${it.profile}.about`), it.native && it.native !== it.profile && t("profile.native", { name: it.native })].filter(Boolean).join("\n");
  return (
    <>
      <div role="radiogroup" aria-label={t("profile.label")} className="hidden rounded-lg bg-raised p-0.5 sm:flex">
        {profiles.map((it) => {
          const on = it.profile === selection.profile;
          return (
            <label
              key={it.profile}
              title={about(it)}
              className={`cursor-pointer rounded-md px-3 py-1 text-[12.5px] font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent
                ${on ? "bg-surface text-ink shadow-[0_1px_2px_rgb(0_0_0/0.12)]" : "text-muted hover:text-ink"}`}
            >
              <input type="radio" name="profile" className="sr-only" checked={on} onChange={() => select({ profile: it.profile })} />
              {maybe("profile", it.profile)}
            </label>
          );
        })}
      </div>
      {own.length > 0 && (
        <Choice
          label={t("profile.own", { name: titleOf(selection.provider!) })}
          className="hidden w-24 sm:block md:w-auto md:max-w-36"
          value={native.some((it) => it.mode === selection.profile) ? selection.profile : ""}
          onChange={(profile) => profile && select({ profile })}
          options={[{ value: "", text: t("profile.more"), disabled: true }, ...own]}
        />
      )}
      <Choice
        label={t("profile.label")}
        className="w-20 sm:hidden"
        value={selection.profile}
        onChange={(profile) => select({ profile })}
        options={[...profiles.map((it) => ({ value: it.profile, text: maybe("profile", it.profile) })), ...own]}
      />
    </>
  );
}
