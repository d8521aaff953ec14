import { type FormEvent, useState } from "react";
import type { AskItem, Question, Reply } from "../api/types";
import { t } from "../i18n";
import { Button } from "../ui/controls";
import { line, plain } from "../ui/plain";
import Elicitation from "./elicitation";

interface Props {
  question: Question;
  sending: boolean;
  onReply: (reply: Reply) => void;
}

export default function AskForm(props: Props) {
  return props.question.kind === "input" ? <Answers {...props} /> : <Elicitation {...props} />;
}

const field = "w-full rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] placeholder:text-faint";

function Answers({ question, sending, onReply }: Props) {
  const items = question.questions ?? [];
  const [chosen, setChosen] = useState<Record<string, string[]>>({});
  const [typed, setTyped] = useState<Record<string, string>>({});

  const answerOf = (item: AskItem): string[] => {
    const own = typed[item.id]?.trim();
    const picked = chosen[item.id] ?? [];
    if (!own) return picked;
    return item.multi ? [...picked, own] : [own];
  };
  const complete = items.every((item) => answerOf(item).length > 0);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (complete) onReply({ answers: Object.fromEntries(items.map((item) => [item.id, answerOf(item)])) });
  };

  const pick = (item: AskItem, label: string, on: boolean) => {
    setChosen((old) => {
      const before = old[item.id] ?? [];
      const next = item.multi ? (on ? [...before, label] : before.filter((it) => it !== label)) : [label];
      return { ...old, [item.id]: next };
    });
    if (!item.multi) setTyped((old) => ({ ...old, [item.id]: "" }));
  };

  return (
    <form onSubmit={submit} className="space-y-4">
      {items.map((item) => (
        <fieldset key={item.id} className="min-w-0">
          <legend className="mb-1.5 text-[13.5px] font-medium wrap-anywhere">
            {item.header && <span className="mr-2 text-[11.5px] font-medium text-faint">{line(item.header)}</span>}
            {plain(item.text)}
            {item.multi && <span className="ml-2 text-[11.5px] font-normal text-faint">{t("ask.chooseMany")}</span>}
          </legend>
          <div className="space-y-1">
            {item.options?.map((option) => (
              <label
                key={option.label}
                className="flex items-start gap-2.5 rounded-lg border border-line px-2.5 py-1.5 hover:bg-hover has-checked:border-accent
                  has-checked:bg-accent-soft"
              >
                <input
                  type={item.multi ? "checkbox" : "radio"}
                  name={`${question.question_id}-${item.id}`}
                  className="mt-1 accent-[var(--accent)]"
                  checked={chosen[item.id]?.includes(option.label) ?? false}
                  onChange={(event) => pick(item, option.label, event.target.checked)}
                />
                <span className="min-w-0 text-[13px]">
                  <span className="font-medium">{line(option.label)}</span>
                  {option.description && <span className="block text-muted wrap-anywhere">{plain(option.description)}</span>}
                </span>
              </label>
            ))}
            {(item.free || !item.options?.length) &&
              (item.secret ? (
                <input
                  type="password"
                  autoComplete="off"
                  aria-label={item.text}
                  className={field}
                  value={typed[item.id] ?? ""}
                  onChange={(event) => setTyped({ ...typed, [item.id]: event.target.value })}
                />
              ) : (
                <textarea
                  aria-label={item.options?.length ? t("ask.other") : item.text}
                  placeholder={item.options?.length ? t("ask.other") : undefined}
                  rows={item.options?.length ? 1 : 3}
                  className={`${field} field-sizing-content max-h-60 resize-none`}
                  value={typed[item.id] ?? ""}
                  onChange={(event) => {
                    setTyped({ ...typed, [item.id]: event.target.value });
                    if (!item.multi && event.target.value) setChosen({ ...chosen, [item.id]: [] });
                  }}
                />
              ))}
          </div>
        </fieldset>
      ))}
      <Button type="submit" look="primary" disabled={!complete || sending}>
        {t("ask.answer")}
      </Button>
    </form>
  );
}
