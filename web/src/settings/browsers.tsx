import { request } from "../api/http";
import type { BrowserLogins } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { Failed, Section, useLoad } from "../pages/page";
import { login } from "../state/account";
import { useStore } from "../state/store";
import { Badge, Button, Notice } from "../ui/controls";
import { ago, moment } from "../ui/time";
import { tried } from "../ui/toast";

/** browserOf is a short name of a browser: its product and system, as far as it says them. */
export const browserOf = (client: string): string => {
  const product = /(Edg|OPR|Firefox|Chrome|HeadlessChrome|Safari)\/(\d+)/.exec(client);
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(client);
  return [product && `${product[1]} ${product[2]}`, system?.[0]].filter(Boolean).join(", ") || client.slice(0, 40) || "?";
};

export function Browsers() {
  const mayChange = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  return <Section title={t("logins.title")}>{mayChange ? <List /> : <Notice>{t("settings.readOnly")}</Notice>}</Section>;
}

/** List shows the browsers that are logged in, and ends them. */
function List() {
  const { value, problem, reload } = useLoad<BrowserLogins>("/auth/logins");
  if (problem) return <Failed problem={problem} reload={reload} />;
  return (
    <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
      {value?.items.map((item) => (
        <li key={item.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3.5 py-2.5 text-[13px]">
          <div className="min-w-0 flex-1 basis-52">
            <p className="truncate font-medium" title={item.client}>
              {browserOf(item.client)}
            </p>
            <p className="text-[12px] text-muted">
              <time dateTime={item.last_used_at} title={moment(item.last_used_at)}>
                {t("connections.used", { time: ago(item.last_used_at) })}
              </time>
              {" · "}
              {t("settings.until", { time: moment(item.ends_at) })}
            </p>
          </div>
          {item.current ? (
            <Badge tone="ok">{t("logins.this")}</Badge>
          ) : (
            <Button look="danger" onClick={() => void tried(request("DELETE", `/auth/logins/${item.id}`).then(reload))}>
              {t("logins.end")}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}
