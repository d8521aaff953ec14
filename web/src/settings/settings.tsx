import { t } from "../i18n";
import "../i18n/later";
import { Page } from "../pages/page";
import { logOut } from "../state/account";
import { route } from "../state/route";
import { useStore } from "../state/store";
import { Button } from "../ui/controls";
import { Link } from "../ui/link";
import { tried } from "../ui/toast";
import { Agents } from "./agents";
import { Browsers } from "./browsers";
import { General } from "./general";
import { Tokens } from "./tokens";

const parts = { general: General, tokens: Tokens, browsers: Browsers, agents: Agents };
const sections = Object.keys(parts) as (keyof typeof parts)[];

/** Settings is what a user chooses for this browser, and what they may see and end of their own on the server. */
export default function Settings() {
  const section = useStore(route, (it) => sections.find((name) => it.page === "settings" && it.section === name) ?? "general");
  const Part = parts[section];
  return (
    <Page
      title={t("menu.settings")}
      about={t("settings.about")}
      action={
        <Button look="quiet" onClick={() => void tried(logOut())}>
          {t("login.out")}
        </Button>
      }
    >
      <nav aria-label={t("settings.sections")} className="mb-6 flex flex-wrap gap-x-1 gap-y-1 border-b border-line pb-2">
        {sections.map((it) => (
          <Link
            key={it}
            to={{ page: "settings", section: it === "general" ? undefined : it }}
            current={it === section}
            className={`rounded-lg px-3 py-1.5 text-[13px] font-medium ${it === section ? "bg-hover text-ink" : "text-muted hover:bg-hover hover:text-ink"}`}
          >
            {t(`settings.${it}`)}
          </Link>
        ))}
      </nav>
      <Part />
    </Page>
  );
}
