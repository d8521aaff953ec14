import { useEffect, useState } from "react";
import { get } from "../api/http";
import type { Ways } from "../api/types";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { opened } from "../keys/open";
import { Section } from "../pages/page";
import { login } from "../state/account";
import { supported } from "../state/notices";
import { type Language, prefs, setPrefs, type Theme } from "../state/prefs";
import { useStore } from "../state/store";
import { Button } from "../ui/controls";
import { Link } from "../ui/link";
import { Options } from "./options";

const panes = ["usage", "connections", "inbox"] as const;

/** General is what this browser remembers. */
export function General() {
  const { theme, language, shortcuts } = useStore(prefs);
  const manages = useManages();
  return (
    <>
      <Section title={t("settings.look")}>
        <div className="space-y-3 rounded-xl border border-line bg-surface p-4">
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
        </div>
      </Section>
      <Notices />
      <Section title={t("keys.title")}>
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-xl border border-line bg-surface p-4 text-[13px]">
          <label className="flex items-center gap-2.5">
            <input
              type="checkbox"
              className="size-4 accent-[var(--accent)]"
              checked={shortcuts !== false}
              onChange={(event) => setPrefs({ shortcuts: event.target.checked })}
            />
            {t("keys.on")}
          </label>
          <Button onClick={() => opened.set("overview")}>{t("settings.allKeys")}</Button>
        </div>
      </Section>
      <Section title={t("menu.pages")}>
        <nav aria-label={t("menu.pages")} className="flex flex-wrap gap-x-4 text-[13px]">
          {panes.map((page) => (
            <Link key={page} to={{ page }}>
              {t(`${page}.title`)}
            </Link>
          ))}
          {manages && <Link to={{ page: "users" }}>{t("people.title")}</Link>}
        </nav>
      </Section>
    </>
  );
}

/** useManages says whether the server has users and this login could manage them; whether it may, the server says there. */
function useManages(): boolean {
  const covers = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  const [accounts, setAccounts] = useState(false);
  useEffect(() => void get<Ways>("/auth/ways").then((it) => setAccounts(it.password), () => undefined), []);
  return covers && accounts;
}

/** Notices asks the browser for its leave only when the user has asked for notices. */
function Notices() {
  const on = useStore(prefs, (it) => it.notify === true);
  const [leave, setLeave] = useState(() => (supported() ? Notification.permission : "denied"));
  const turn = async (wanted: boolean) => {
    if (!wanted) return setPrefs({ notify: false });
    const given = await Notification.requestPermission();
    setLeave(given);
    if (given === "granted") setPrefs({ notify: true });
  };
  const trouble = !supported() ? t("notices.unsupported") : leave === "denied" ? t("notices.denied") : undefined;
  return (
    <Section title={t("notices.title")}>
      <div className="rounded-xl border border-line bg-surface p-4 text-[13px]">
        <label className="flex items-start gap-2.5">
          <input
            type="checkbox"
            className="mt-0.5 size-4 accent-[var(--accent)]"
            checked={on && leave === "granted"}
            disabled={trouble !== undefined}
            aria-describedby="notices-about"
            onChange={(event) => void turn(event.target.checked)}
          />
          <span>{t("notices.wanted")}</span>
        </label>
        <p id="notices-about" className="mt-1.5 text-[12.5px] text-muted">
          {trouble ?? t("notices.about")}
        </p>
      </div>
    </Section>
  );
}
