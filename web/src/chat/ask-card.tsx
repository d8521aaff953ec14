import { useState } from "react";
import type { Decision, Question, Reply } from "../api/types";
import { maybe, t, type Key } from "../i18n";
import { login } from "../state/account";
import { useStore } from "../state/store";
import { Badge, Button, type Tone } from "../ui/controls";
import { AskIcon, CheckIcon } from "../ui/icons";
import { later } from "../ui/later";
import { line, plainAll } from "../ui/plain";
import { moment, span, useNow } from "../ui/time";
import { succeeded } from "../ui/toast";
import { useConversation, useQuestion, useShared } from "./context";
import { Diff } from "./diff";
import { Fields } from "./fields";
import { Prose } from "./prose";
import { Rules } from "./rules";

const AskForm = later(() => import("./ask-form"));

/** Questions that were answered from this page; others were answered elsewhere. */
const mine = new Set<string>();

/** What agents call every question of a kind says no more than the page's own words. */
const general = new Set(["", "Run a command", "Change files", "Grant more permissions"]);
const headOf = ({ title = "", kind }: Question): string => (general.has(title) ? t(`ask.${kind}` as Key) : line(title));

/** AskCard is a question; paired: what it was about stands next to it. */
export function AskCard({ question: given, paired = false }: { question: Question; paired?: boolean }) {
  const question = useQuestion(given);
  const shared = useShared();
  if (question.state !== "pending") return <Settled question={question} paired={paired} />;
  return shared ? <OpenAsk question={question} /> : <Pending question={question} />;
}

function Pending({ question }: { question: Question }) {
  const conversation = useConversation();
  return <OpenAsk question={question} answer={(reply) => conversation.reply(question, reply)} />;
}

/** OpenAsk is a question with what it is about and, for who may, the ways to answer it, wherever it stands. */
export function OpenAsk({ question, answer }: { question: Question; answer?: (reply: Reply) => Promise<void> }) {
  const [sending, setSending] = useState(false);
  const send = async (reply: Reply) => {
    if (!answer) return;
    setSending(true);
    mine.add(question.question_id);
    if (!(await succeeded(answer(reply)))) mine.delete(question.question_id);
    setSending(false);
  };
  return (
    <section aria-label={t(`ask.${question.kind}` as Key)} className="rounded-xl border border-warn/45 bg-surface">
      <header className="flex flex-wrap items-center gap-x-2 gap-y-1 rounded-t-xl border-b border-line bg-warn-soft px-3.5 py-2 text-[13px]">
        <AskIcon className="size-4 text-warn" />
        <h3 className="min-w-0 flex-1 font-semibold text-warn wrap-anywhere">{headOf(question)}</h3>
        {question.deadline && <Deadline at={question.deadline} />}
      </header>
      <div className="space-y-3 px-3.5 py-3">
        <Context question={plainAll(question)} />
        {!answer ? (
          <Unanswered question={question} />
        ) : question.kind === "input" || question.kind === "elicitation" ? (
          <AskForm question={question} sending={sending} onReply={send} />
        ) : (
          <Verdict question={question} sending={sending} onReply={send} />
        )}
      </div>
    </section>
  );
}

function Unanswered({ question }: { question: Question }) {
  return (
    <>
      {question.questions?.map((it) => (
        <p key={it.id} className="wrap-anywhere">
          {line(it.text)}
        </p>
      ))}
      <p className="text-[13px] text-muted">{t("shared.waits")}</p>
    </>
  );
}

function Deadline({ at }: { at: string }) {
  const left = Date.parse(at) - useNow(true);
  return <Badge tone={left < 60_000 ? "bad" : "neutral"}>{left > 0 ? t("ask.deadline", { time: span(left) }) : t("ask.overdue")}</Badge>;
}

function Context({ question }: { question: Question }) {
  return (
    <>
      {question.reason &&
        (question.kind === "plan" ? (
          <Prose text={question.reason} />
        ) : (
          <p className="whitespace-pre-wrap text-[13px] text-muted wrap-anywhere">{question.reason}</p>
        ))}
      {question.command && (
        <div className="rounded-lg border border-line bg-code px-2.5 py-2">
          <pre className="max-h-48 overflow-auto whitespace-pre-wrap break-all font-mono text-[12.5px]" tabIndex={0} aria-label={t("part.command")}>
            <span className="select-none text-faint">$ </span>
            {question.command}
          </pre>
          {question.dir && <p className="mt-1 font-mono text-[11.5px] text-faint wrap-anywhere">{question.dir}</p>}
        </div>
      )}
      {question.changes?.map((change, index) => (
        <Diff key={index} change={change} asked />
      ))}
      {question.tool && <Fields label={[question.tool.server, question.tool.name].filter(Boolean).join("/")} value={question.tool.input} />}
      {question.wants && <Rules label={t("ask.wants")} rules={question.wants_rules} english={question.wants} />}
    </>
  );
}

function Verdict({ question, sending, onReply }: { question: Question; sending: boolean; onReply: (reply: Reply) => void }) {
  const [reason, setReason] = useState("");
  const offered: Decision[] = question.decisions?.length ? question.decisions : ["allow", "deny"];
  const negative = (decision: Decision) => decision === "deny" || decision === "cancel";
  return (
    <>
      {question.always && !question.wants && <Rules label={t("ask.rule")} rules={question.always_rules} english={question.always} />}
      <div className="flex flex-wrap gap-2">
        {offered.map((decision) => (
          <Button
            key={decision}
            look={decision === "allow" ? "primary" : negative(decision) ? "danger" : "plain"}
            disabled={sending}
            onClick={() =>
              onReply({ decision, ...(negative(decision) && reason.trim() && { message: reason.trim() }) })
            }
          >
            {t(`ask.${decision}` as Key)}
          </Button>
        ))}
      </div>
      <input
        aria-label={t("ask.reason")}
        placeholder={t("ask.reason")}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        className="w-full rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] placeholder:text-faint"
      />
    </>
  );
}

const tones: Record<string, Tone> = { answered: "ok", expired: "warn", canceled: "neutral", self_answered: "bad" };

/** Settled is one line about a question that is over. */
export function Settled({ question, paired = false }: { question: Question; paired?: boolean }) {
  const decision = question.answer?.decision;
  const denied = decision === "deny" || decision === "cancel";
  const me = useStore(login, (it) => (it.state === "in" ? it.account.user.id : ""));
  const shared = useShared();
  const elsewhere =
    !shared &&
    question.state === "answered" &&
    question.resolved_at !== undefined &&
    !mine.has(question.question_id) &&
    Date.now() - Date.parse(question.resolved_at) < 10 * 60_000;
  return (
    <section aria-label={t(`ask.${question.kind}` as Key)} className="rounded-xl border border-line bg-surface px-3 py-1.5 text-[13px]">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <CheckIcon className="size-4 text-faint" />
        <span className="min-w-0 flex-1 truncate text-muted">
          {headOf(question)}
          {!paired && question.command && <code className="ml-1.5 font-mono text-[12px]">{line(question.command)}</code>}
        </span>
        {elsewhere && <span className="text-[11.5px] text-faint">{t("ask.elsewhere")}</span>}
        {question.answered_by && question.answered_by !== me && (
          <span className="hidden max-w-32 truncate text-[11.5px] text-faint sm:inline">{t("ask.by", { name: question.answered_by })}</span>
        )}
        <Badge tone={denied && question.state !== "self_answered" ? "neutral" : (tones[question.state] ?? "neutral")}>
          {decision && question.state === "answered" ? maybe("ask", decision) : t(`ask.${question.state}` as Key)}
        </Badge>
      </div>
      <Given question={question} />
    </section>
  );
}

function Given({ question }: { question: Question }) {
  const given = question.answer?.answers;
  if (question.answer?.message) return <p className="ml-6 text-muted wrap-anywhere">“{question.answer.message}”</p>;
  if (!given || !question.questions) return null;
  return (
    <dl className="ml-6 space-y-1 pb-1" title={question.resolved_at && moment(question.resolved_at)}>
      {question.questions.map((it) => (
        <div key={it.id}>
          <dt className="text-muted wrap-anywhere">{line(it.text)}</dt>
          <dd className="font-medium wrap-anywhere">{it.secret ? t("ask.hidden") : (given[it.id] ?? []).join(", ")}</dd>
        </div>
      ))}
    </dl>
  );
}
