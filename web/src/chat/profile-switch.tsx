import { maybe, t } from "../i18n";
import { Choice } from "../ui/controls";
import { useSelection } from "./settings-bar";

/** ProfileSwitch says how much the agent may do; which profiles there are depends on the agent. */
export function ProfileSwitch() {
  const [selection, select] = useSelection();
  const profiles = selection.provider?.profiles ?? [];
  if (profiles.length === 0) return null;
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
      <Choice
        label={t("profile.label")}
        className="sm:hidden"
        value={selection.profile}
        onChange={(profile) => select({ profile })}
        options={profiles.map((it) => ({ value: it.profile, text: maybe("profile", it.profile) }))}
      />
    </>
  );
}
