import { useEffect } from "react";
import type { Question } from "../api/types";
import { OpenAsk, Settled } from "../chat/ask-card";
import { t } from "../i18n";
import "../i18n/later";
import { inbox, isOpen, loadInbox, openCount, reply, sweep } from "../state/inbox";
import { useName } from "../state/names";
import { useStore } from "../state/store";
import { Button, Notice } from "../ui/controls";
import { CheckIcon, Spinner } from "../ui/icons";
import { Link } from "../ui/link";
import { ago, moment } from "../ui/time";
import { Page } from "./page";

/** Inbox shows every question that waits, in all chats, to be answered here. */
export default function InboxPage() {
  const { items, state } = useStore(inbox);
  const open = useStore(inbox, openCount);
  useEffect(() => sweep, []); // what was settled stays in sight until the page is left
  return (
    <Page title={t("inbox.title")} about={t("inbox.about")}>
      <p role="status" className="sr-only">
        {t(open === 1 ? "inbox.one" : "inbox.many", { n: open })}
      </p>
      {state === "error" && (
        <div className="mb-4">
          <Notice tone="bad" title={t("inbox.error")} action={<Button onClick={() => void loadInbox().catch(() => {})}>{t("app.again")}</Button>} />
        </div>
      )}
      {state === "loading" && items.length === 0 && <Spinner />}
      {state !== "loading" && items.length === 0 && (
        <div className="flex flex-col items-center gap-2 rounded-2xl border border-dashed border-line-strong px-4 py-14 text-center">
          <CheckIcon className="size-6 text-ok" />
          <p className="font-medium">{t("inbox.empty")}</p>
          <p className="max-w-prose text-[13px] text-muted">{t("inbox.emptyText")}</p>
        </div>
      )}
      <ul className="space-y-6">
        {items.map((it) => (
          <Entry key={it.question_id} question={it} />
        ))}
      </ul>
    </Page>
  );
}

function Entry({ question }: { question: Question }) {
  const name = useName(question.session_id);
  return (
    <li>
      <h2 className="mb-1.5 flex items-baseline justify-between gap-3 text-[12.5px] text-muted">
        <Link to={{ page: "chat", id: question.session_id }} className="min-w-0 truncate font-medium text-ink hover:underline">
          {name || t("history.untitled")}
        </Link>
        {question.asked_at && (
          <time dateTime={question.asked_at} title={moment(question.asked_at)} className="shrink-0">
            {ago(question.asked_at)}
          </time>
        )}
      </h2>
      {isOpen(question) ? <OpenAsk question={question} answer={(answer) => reply(question, answer)} /> : <Settled question={question} />}
    </li>
  );
}
