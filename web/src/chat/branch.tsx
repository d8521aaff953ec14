import { useState } from "react";
import type { ChatMessage } from "../api/types";
import { t } from "../i18n";
import { inputOf } from "../state/attached";
import { can, providerNamed, providers } from "../state/providers";
import { useStore } from "../state/store";
import { Button, IconButton } from "../ui/controls";
import { BranchIcon, PencilIcon, RetryIcon } from "../ui/icons";
import { succeeded } from "../ui/toast";
import { useConversation, useSide } from "./context";

/** useBranching: this chat's agent can go on from an earlier moment, in a chat of its own; what was said stays where it is. */
function useBranching(message: ChatMessage): string | undefined {
  useStore(providers);
  const name = useSide((side) => side.session?.provider);
  const active = useSide((side) => side.session?.active_run_id);
  const run = message.metadata?.run_id;
  return run && run !== active && can(providerNamed(name), "fork") ? run : undefined;
}

/** Again answers a message once more in a branch, or goes on from an answer in one. */
export function Again({ message }: { message: ChatMessage }) {
  const conversation = useConversation();
  const run = useBranching(message);
  const [busy, setBusy] = useState(false);
  if (!run) return null;
  const act = async (how: Parameters<typeof conversation.branch>[0]) => {
    setBusy(true);
    await succeeded(conversation.branch(how));
    setBusy(false);
  };
  return (
    <>
      <IconButton label={t("branch.again")} className="size-7" disabled={busy} onClick={() => void act({ before_run_id: run, run: {} })}>
        <RetryIcon className="size-3.5" />
      </IconButton>
      <IconButton label={t("branch.here")} className="size-7" disabled={busy} onClick={() => void act({ up_to_run_id: run })}>
        <BranchIcon className="size-3.5" />
      </IconButton>
    </>
  );
}

/** Edit says a message in other words, in a branch that begins before it. Its pictures and files stay with it. */
export function Edit({ message, className }: { message: ChatMessage; className?: string }) {
  const conversation = useConversation();
  const run = useBranching(message);
  const said = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
  const [text, setText] = useState<string>();
  const [busy, setBusy] = useState(false);
  if (!run) return null;
  const save = async () => {
    if (!text?.trim() || busy) return;
    const files = message.parts.flatMap((part) => (part.type === "file" ? [inputOf(part)] : []));
    setBusy(true);
    const done = await succeeded(conversation.branch({ before_run_id: run, run: { input: [{ type: "text", text: text.trim() }, ...files] } }));
    setBusy(false);
    if (done) setText(undefined); // what was refused stays in the field
  };
  if (text === undefined)
    return (
      <IconButton label={t("branch.edit")} className={`size-7 ${className ?? ""}`} onClick={() => setText(said)}>
        <PencilIcon className="size-3.5" />
      </IconButton>
    );
  return (
    <form
      className="w-full max-w-[85%] space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <textarea
        autoFocus
        aria-label={t("branch.edit")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setText(undefined);
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          void save();
        }}
        className="field-sizing-content max-h-[40dvh] w-full resize-none rounded-2xl border border-line-strong bg-surface px-3.5 py-2 leading-[1.6]"
      />
      <p className="text-[12px] text-muted">{t("branch.about")}</p>
      <div className="flex justify-end gap-2">
        <Button onClick={() => setText(undefined)}>{t("common.cancel")}</Button>
        <Button type="submit" look="primary" disabled={busy || !text.trim()}>
          {t("composer.send")}
        </Button>
      </div>
    </form>
  );
}
