import { useEffect, useState } from "react";
import { get, request } from "./api/http";
import type { BrowserLogin, BrowserLogins } from "./api/types";
import { t } from "./i18n";
import { Button } from "./ui/controls";
import { tried } from "./ui/toast";

/** browserOf is a short name of a browser: its product and system, as far as it says them. */
const browserOf = (client: string): string => {
  const product = /(Edg|OPR|Firefox|Chrome|HeadlessChrome|Safari)\/(\d+)/.exec(client);
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(client);
  return [product && `${product[1]} ${product[2]}`, system?.[0]].filter(Boolean).join(", ") || client.slice(0, 40) || "?";
};

/** Logins lists the browsers that are logged in, and ends them. */
export function Logins() {
  const [items, setItems] = useState<BrowserLogin[]>([]);
  const load = () =>
    get<BrowserLogins>("/auth/logins")
      .then((it) => setItems(it.items))
      .catch(() => setItems([]));
  useEffect(() => void load(), []);
  if (items.length === 0) return null;
  return (
    <section aria-label={t("logins.title")} className="mt-4 border-t border-line pt-3">
      <h3 className="mb-2 text-[13px] text-muted">{t("logins.title")}</h3>
      <ul className="max-h-48 space-y-1 overflow-y-auto">
        {items.map((item) => (
          <li key={item.id} className="flex items-center justify-between gap-3 text-[12.5px]">
            <span className="min-w-0 truncate" title={item.client}>
              {browserOf(item.client)} · <time dateTime={item.last_used_at}>{new Date(item.last_used_at).toLocaleString()}</time>
            </span>
            {item.current ? (
              <span className="shrink-0 text-muted">{t("logins.this")}</span>
            ) : (
              <Button look="quiet" onClick={() => void tried(request("DELETE", `/auth/logins/${item.id}`).then(load))}>
                {t("logins.end")}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
