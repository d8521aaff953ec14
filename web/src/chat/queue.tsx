import { useState } from "react";
import type { QueuedMessage } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { textOf } from "../state/fold";
import { Button, IconButton } from "../ui/controls";
import { CloseIcon, DownIcon, PencilIcon, SendIcon, SteerIcon, UpIcon } from "../ui/icons";
import { succeeded, tried } from "../ui/toast";
import { useConversation, useSide } from "./context";

/** Queue shows what waits for the running run: it can be changed, moved, sent now or dropped. */
export function Queue({ busy, canSteer }: { busy: boolean; canSteer: boolean }) {
  const conversation = useConversation();
  const queue = useSide((side) => side.queue);
  if (queue.length === 0) return null;
  const move = (from: number, to: number) => {
    const order = queue.map((message) => message.id);
    order.splice(to, 0, order.splice(from, 1)[0]!);
    void tried(conversation.queued.order(order));
  };
  return (
    <section aria-label={t("queue.title")} className="mb-2 rounded-xl border border-line bg-surface">
      <h2 className="px-3 pt-2 text-[11.5px] font-medium text-faint">{t("queue.title")}</h2>
      <ol className="max-h-48 overflow-y-auto px-1.5 pb-1.5">
        {queue.map((message, index) => (
          <Entry
            key={message.id}
            message={message}
            first={index === 0}
            last={index === queue.length - 1}
            busy={busy}
            canSteer={canSteer}
            onMove={(by) => move(index, index + by)}
          />
        ))}
      </ol>
    </section>
  );
}

function Entry(props: { message: QueuedMessage; first: boolean; last: boolean; busy: boolean; canSteer: boolean; onMove: (by: number) => void }) {
  const { message, first, last, busy, canSteer, onMove } = props;
  const conversation = useConversation();
  const [draft, setDraft] = useState<string>();
  const save = async () => {
    if (!draft?.trim() || (await succeeded(conversation.queued.edit(message, draft.trim())))) setDraft(undefined);
  };
  if (draft !== undefined)
    return (
      <li className="flex items-end gap-1.5 p-1.5">
        <textarea
          autoFocus
          aria-label={t("queue.edit")}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") setDraft(undefined);
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void save();
            }
          }}
          className="field-sizing-content min-w-0 flex-1 resize-none rounded-lg border border-line-strong bg-ground px-2 py-1.5 text-[13px]"
        />
        <Button look="primary" onClick={() => void save()}>
          {t("common.save")}
        </Button>
      </li>
    );
  return (
    <li className="flex items-center gap-0.5 rounded-lg pl-1.5 hover:bg-hover">
      <span className="min-w-0 flex-1 truncate text-[13px]">{textOf(message.input) || t("part.attachment")}</span>
      <IconButton label={t("queue.up")} disabled={first} onClick={() => onMove(-1)}>
        <UpIcon className="size-3.5" />
      </IconButton>
      <IconButton label={t("queue.down")} disabled={last} onClick={() => onMove(1)}>
        <DownIcon className="size-3.5" />
      </IconButton>
      <IconButton label={t("queue.edit")} onClick={() => setDraft(textOf(message.input))}>
        <PencilIcon className="size-3.5" />
      </IconButton>
      {busy ? (
        canSteer && (
          <IconButton label={t("queue.promote")} onClick={() => void tried(conversation.queued.promote(message))}>
            <SteerIcon className="size-3.5" />
          </IconButton>
        )
      ) : (
        <IconButton label={t("queue.start")} onClick={() => void tried(conversation.queued.start(message))}>
          <SendIcon className="size-3.5" />
        </IconButton>
      )}
      <IconButton label={t("queue.remove")} onClick={() => void tried(conversation.queued.remove(message))}>
        <CloseIcon className="size-3.5" />
      </IconButton>
    </li>
  );
}
