import { t } from "../i18n";
import { drop, type Returned, swap, type Why } from "../state/outbox";
import { useStore } from "../state/store";
import { Button, IconButton, Notice } from "../ui/controls";
import { CloseIcon, PencilIcon, RetryIcon } from "../ui/icons";
import { useConversation } from "./context";
import { remedyOf } from "./remedy";

/** textOf says what is known of a message that came back, and no more. */
export function textOf(why: Why): string {
  switch (why.state) {
    case "refused":
      return t("unsent.refused", { why: why.text ?? "" });
    case "absent":
      return why.text ? t("unsent.absentWhy", { why: why.text }) : t("unsent.absent");
    case "unknown":
      return t("unsent.unknown");
    case "after":
      return t("unsent.after");
    case "draft":
      return t("unsent.draft");
  }
}

/** Unsent says why the message in the field is there again, and shows those that came back while another was being written. */
export function Unsent({ onSend }: { onSend: (id: string) => void }) {
  const conversation = useConversation();
  const { back, aside, lost } = useStore(conversation.box);
  return (
    <>
      {aside.map((it) => (
        <Aside
          key={it.id}
          message={it}
          onSend={() => onSend(it.id)}
          onEdit={() => conversation.box.set((box) => swap(box, it.id))}
          onDrop={() => conversation.box.set((box) => drop(box, it.id))}
        />
      ))}
      {back && (
        <div className="mb-2">
          <Reason why={back.why} />
        </div>
      )}
      {lost !== undefined && (
        <div className="mb-2">
          <Notice tone="warn">{t("unsent.lost", { n: lost })}</Notice>
        </div>
      )}
    </>
  );
}

function Reason({ why }: { why: Why }) {
  return (
    <Notice tone={why.state === "unknown" ? "warn" : "bad"} action={remedyOf(why.code)}>
      <p role={why.state === "unknown" ? "alert" : undefined}>{textOf(why)}</p>
      {why.hint && <p>{why.hint}</p>}
    </Notice>
  );
}

function Aside({ message, onSend, onEdit, onDrop }: { message: Returned; onSend: () => void; onEdit: () => void; onDrop: () => void }) {
  return (
    <section aria-label={t("unsent.label")} className="mb-2 space-y-1.5 rounded-xl border border-line bg-surface p-1.5">
      <div className="flex items-center gap-1">
        <p className="line-clamp-3 min-w-0 flex-1 whitespace-pre-wrap pl-2 text-[13px] wrap-anywhere">{message.text || t("part.attachment")}</p>
        <Button onClick={onSend}>
          <RetryIcon className="size-3.5" />
          {t("unsent.again")}
        </Button>
        <IconButton label={t("unsent.edit")} onClick={onEdit}>
          <PencilIcon className="size-3.5" />
        </IconButton>
        <IconButton label={t("unsent.drop")} onClick={onDrop}>
          <CloseIcon className="size-3.5" />
        </IconButton>
      </div>
      <Reason why={message.why} />
    </section>
  );
}
