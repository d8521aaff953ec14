import type { ReactNode } from "react";
import { t } from "../i18n";
import { Link } from "../ui/link";

/** remedyOf leads to the page on which a failure is put right, if there is one. */
export function remedyOf(code: string | undefined): ReactNode {
  if (code === "budget_exceeded") return <Link to={{ page: "usage" }}>{t("error.budget")}</Link>;
  if (code === "auth") return <Link to={{ page: "connections" }}>{t("error.auth")}</Link>;
  return undefined;
}
