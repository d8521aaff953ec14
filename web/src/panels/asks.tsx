import { useMemo } from "react";
import { AskCard } from "../chat/ask-card";
import { composerBox } from "../chat/composer-box";
import { useSide } from "../chat/context";
import { useSelection } from "../chat/settings-bar";
import { t } from "../i18n";
import { noteOf, titleOf } from "../state/providers";
import { Button, Notice } from "../ui/controls";

/** Asks lists what waits for an answer, and what was answered. */
export function Asks() {
  const questions = useSide((side) => side.questions);
  const [{ provider }] = useSelection();
  const pending = questions.filter((it) => it.state === "pending");
  const past = useMemo(() => questions.filter((it) => it.state !== "pending").toReversed(), [questions]);
  const deaf = provider?.capabilities && provider.capabilities.human_loop !== "validated";
  return (
    <div className="space-y-5">
      {deaf && (
        <Notice title={t("ask.guideTitle")} action={<Button onClick={() => composerBox.current?.focus()}>{t("ask.guideAction")}</Button>}>
          <p>{t("ask.guide", { name: titleOf(provider) })}</p>
          {noteOf(provider, "human_loop") && <p className="mt-1">{noteOf(provider, "human_loop")}</p>}
        </Notice>
      )}
      {pending.length === 0 && !deaf && <p className="text-[13px] text-muted">{t("ask.none")}</p>}
      {pending.length > 0 && (
        <section className="space-y-3">
          <h3 className="text-[11.5px] font-medium text-faint">{t("ask.pending")}</h3>
          {pending.map((question) => (
            <AskCard key={question.question_id} question={question} />
          ))}
        </section>
      )}
      {past.length > 0 && (
        <section className="space-y-2">
          <h3 className="text-[11.5px] font-medium text-faint">{t("ask.history")}</h3>
          {past.map((question) => (
            <AskCard key={question.question_id} question={question} />
          ))}
        </section>
      )}
    </div>
  );
}
