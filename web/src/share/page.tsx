import { useEffect, useState } from "react";
import { ConversationContext } from "../chat/context";
import { MessageList } from "../chat/message-list";
import { t } from "../i18n";
import "../i18n/later";
import { useStore } from "../state/store";
import { titleFor } from "../state/tab";
import { Badge, Notice } from "../ui/controls";
import { Mark, Spinner } from "../ui/icons";
import { moment } from "../ui/time";
import { Shared } from "./shared";

/** SharePage is a chat for a reader who has nothing but its share link. */
export default function SharePage({ token }: { token: string }) {
  const [shared] = useState(() => new Shared(token));
  useEffect(() => shared.open(), [shared]);
  const { about, messages, over, problem } = useStore(shared.seen);
  const active = about?.status.active === true;
  const title = about?.title.split("\n")[0] || (about ? t("history.untitled") : "");
  useEffect(() => {
    document.title = titleFor({ title, running: active }, 0);
  }, [title, active]);
  return (
    <ConversationContext value={shared}>
      <div className="flex h-full flex-col">
        <header className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-2.5 gap-y-1 border-b border-line bg-surface px-3 py-1.5">
          <Mark />
          <h1 className="min-w-0 flex-1 basis-40 truncate text-[13px] font-semibold">{title || "thole"}</h1>
          {about && (
            <>
              <span className="truncate text-[12px] text-muted">{[about.provider, about.model].filter(Boolean).join(" · ")}</span>
              <span className="inline-flex" title={t("shared.until", { time: moment(about.expires_at) })}>
                <Badge>{t("shared.readOnly")}</Badge>
              </span>
            </>
          )}
        </header>
        <div role="status">{about && problem && <p className="bg-warn-soft py-1 text-center text-[12.5px] text-warn">{t("app.offline")}</p>}</div>
        <main id="chat" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col outline-none">
          <h2 className="sr-only">{t("chat.label")}</h2>
          {over || (!about && problem) ? (
            <div className="flex flex-1 items-center justify-center p-4">
              <Notice tone={over ? "warn" : "bad"} title={over ? t("shared.over") : problem!.message}>
                {over ? t("shared.overText") : problem!.hint}
              </Notice>
            </div>
          ) : messages.length ? (
            <MessageList messages={messages} busy={active} running={active} />
          ) : about ? (
            <p className="p-6 text-center text-muted">{t("shared.empty")}</p>
          ) : (
            <p className="flex flex-1 items-center justify-center gap-2 text-muted">
              <Spinner /> {t("app.loading")}
            </p>
          )}
        </main>
      </div>
    </ConversationContext>
  );
}
