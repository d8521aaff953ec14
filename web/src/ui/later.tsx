import { type ComponentType, useEffect, useState } from "react";
import { t } from "../i18n";
import { Button, Notice } from "./controls";
import { Spinner } from "./icons";

/**
 * later is a part of the page that comes in a file of its own. Where that cannot be had (the server is away, or an update
 * has renamed it) the part says so, and everything around it stays.
 */
export function later<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let found: ComponentType<P> | undefined;
  return function Later(props: P) {
    const [Part, setPart] = useState(() => found);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (Part || failed) return;
      let wanted = true;
      load().then(
        (it) => {
          found = it.default;
          if (wanted) setPart(() => it.default);
        },
        () => wanted && setFailed(true),
      );
      return () => {
        wanted = false;
      };
    }, [Part, failed]);
    if (Part) return <Part {...props} />;
    if (!failed) return <Spinner />;
    return (
      <Notice tone="bad" action={<Button onClick={() => setFailed(false)}>{t("app.again")}</Button>}>
        {t("app.partMissing")}
      </Notice>
    );
  };
}
