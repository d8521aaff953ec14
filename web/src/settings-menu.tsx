import { useState } from "react";
import { t, type Key } from "./i18n";
import { Logins } from "./logins";
import { login, logOut } from "./state/account";
import { type Language, prefs, setPrefs, type Theme } from "./state/prefs";
import { useStore } from "./state/store";
import { Button, IconButton } from "./ui/controls";
import { Confirm } from "./ui/dialog";
import { GearIcon } from "./ui/icons";
import { Link } from "./ui/link";
import { tried } from "./ui/toast";

export function SettingsMenu() {
  const [open, setOpen] = useState(false);
  const { theme, language } = useStore(prefs);
  const account = useStore(login);
  return (
    <>
      <IconButton label={t("menu.settings")} onClick={() => setOpen(true)}>
        <GearIcon />
      </IconButton>
      <Confirm open={open} label={t("menu.settings")} onClose={() => setOpen(false)}>
        <h2 className="mb-4 text-[15px] font-semibold">{t("menu.settings")}</h2>
        <Options
          name={t("menu.theme")}
          value={theme}
          options={(["system", "light", "dark"] as Theme[]).map((it) => ({ value: it, text: t(`theme.${it}` as Key) }))}
          onPick={(value) => setPrefs({ theme: value as Theme })}
        />
        <Options
          name={t("menu.language")}
          value={language}
          options={[
            { value: "en", text: "English" },
            { value: "zh", text: "中文" },
          ]}
          onPick={(value) => setPrefs({ language: value as Language })}
        />
        <nav aria-label={t("menu.pages")} className="mt-4 flex flex-wrap gap-x-4 border-t border-line pt-3 text-[13px]">
          {(["usage", "connections"] as const).map((page) => (
            <Link key={page} to={{ page }} onClick={() => setOpen(false)}>
              {t(`${page}.title`)}
            </Link>
          ))}
        </nav>
        {account.state === "in" && account.account.scope === "admin" && <Logins />}
        <div className="mt-5 flex justify-between">
          <Button look="quiet" className="-ml-3" onClick={() => void tried(logOut())}>
            {t("login.out")}
          </Button>
          <Button onClick={() => setOpen(false)}>{t("common.close")}</Button>
        </div>
      </Confirm>
    </>
  );
}

function Options({
  name,
  value,
  options,
  onPick,
}: {
  name: string;
  value: string;
  options: { value: string; text: string }[];
  onPick: (value: string) => void;
}) {
  return (
    <fieldset className="mb-3 flex items-center justify-between gap-4">
      <legend className="float-left text-[13px] text-muted">{name}</legend>
      <div className="flex rounded-lg bg-raised p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            className={`cursor-pointer rounded-md px-3 py-1 text-[12.5px] font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent
              ${option.value === value ? "bg-surface text-ink shadow-[0_1px_2px_rgb(0_0_0/0.12)]" : "text-muted hover:text-ink"}`}
          >
            <input type="radio" className="sr-only" name={name} checked={option.value === value} onChange={() => onPick(option.value)} />
            {option.text}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
