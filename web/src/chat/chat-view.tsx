import { useChat } from "@ai-sdk/react";
import { useEffect, useMemo, useRef } from "react";
import { Problem } from "../api/http";
import type { ChatMessage } from "../api/types";
import { t, type Key } from "../i18n";
import { steady } from "../state/merge";
import { can, choice, providerNamed, providers } from "../state/providers";
import type { Message, Why } from "../state/outbox";
import { prefs } from "../state/prefs";
import { go } from "../state/route";
import { useStore } from "../state/store";
import { Button, CopyButton, Notice } from "../ui/controls";
import { later } from "../ui/later";
import { toField, useArrival, useEscape } from "../ui/focus";
import { RetryIcon, Spinner } from "../ui/icons";
import { say, tried } from "../ui/toast";
import { Composer } from "./composer";
import { composerBox } from "./composer-box";
import { promptsOf } from "./compose/prompts";
import { useCommands } from "./compose/use-commands";
import { useFileSearch } from "./compose/use-file-search";
import { useConversation, useSide } from "./context";
import { MessageList } from "./message-list";
import { profileOf, SettingsBar } from "./settings-bar";
import { useSource } from "./source-picker";
import { textOf, Unsent } from "./unsent";
import { Welcome } from "./welcome";

const Queue = later(async () => ({ default: (await import("./queue")).Queue }));

export function ChatView() {
  const conversation = useConversation();
  const chat = useChat({ chat: conversation.chat, throttle: 50 });
  const history = useStore(conversation.history);
  const replaying = useStore(conversation.replaying);
  const active = useSide((side) => side.session?.active_run_id);
  const stopping = useSide((side) => side.run?.interrupt_requested === true && side.run.outcome === undefined);
  const queued = useSide((side) => side.queue.length > 0);
  const name = useSide((side) => side.session?.provider);
  const list = useStore(providers);
  const wanted = useStore(prefs); // what a new chat starts with changes until it is sent
  const provider = conversation.isDraft ? choice(list) : providerNamed(name);

  const [chosen] = useSource();
  const under = useStore(conversation.box, (box) => box.under);
  const draft = useStore(conversation.box, (box) => box.text);
  const back = useStore(conversation.box, (box) => box.back);
  const aside = useStore(conversation.box, (box) => box.aside);

  // What came back is not in the chat any more, though the chat's own news of that come with a delay.
  const messages = useMemo(() => chat.messages.filter((it) => it.id !== back?.id && !aside.some((other) => other.id === it.id)), [chat.messages, back, aside]);

  // A new chat shows its first message before there is a session to put it in.
  const first = useMemo(() => (conversation.isDraft ? under.map(asMessage) : []), [conversation, conversation.isDraft, under]);
  const running = chat.status === "streaming" || active !== undefined;
  const busy = running || chat.status === "submitted" || first.length > 0;
  const shown = useRef<ChatMessage[]>([]);
  shown.current = steady(shown.current, first.length ? first : messages, replaying);

  const commands = useCommands();
  const searchFiles = useFileSearch();

  const start = () => {
    const { effort } = conversation.box.get();
    const model = known(provider?.models, wanted.model);
    return { provider: provider?.name, model, execution_profile: profileOf(provider, wanted.profile) || undefined, effort: effort || undefined, chosen };
  };
  useArrival(conversation);
  useEscape(busy && !stopping, () => void tried(conversation.stop()));
  const sent = async (outcome: Promise<Why | undefined>) => {
    toField();
    const why = await outcome;
    if (why && conversation.isClosed) say(t("unsent.elsewhere"), textOf(why));
  };

  const gone = history.state === "missing" || history.state === "deleted";
  if (gone || history.state === "error")
    return (
      <div className="flex flex-1 items-center justify-center p-6">
        <Notice
          tone={gone ? "neutral" : "bad"}
          title={gone ? t(`chat.${history.state}` as Key) : (history.problem?.message ?? t("app.failed"))}
          action={
            gone ? (
              <Button onClick={() => go({ page: "new" })}>{t("history.new")}</Button>
            ) : (
              <Button onClick={() => void conversation.load()}>{t("app.again")}</Button>
            )
          }
        >
          {history.problem?.hint}
          {history.state === "deleted" && draft.trim() && (
            <div className="mt-2 flex items-start gap-1">
              <p className="line-clamp-6 min-w-0 flex-1 whitespace-pre-wrap rounded-lg bg-code px-2.5 py-1.5 text-ink wrap-anywhere">{draft}</p>
              <CopyButton text={draft} />
            </div>
          )}
        </Notice>
      </div>
    );

  const empty = shown.current.length === 0;
  return (
    <>
      <Announcer busy={running} />
      {empty && history.state === "loading" ? (
        <p className="flex flex-1 items-center justify-center gap-2 text-muted">
          <Spinner /> {t("app.loading")}
        </p>
      ) : empty && !busy ? (
        <Welcome onPick={(text) => composerBox.current?.fill(text)} />
      ) : (
        <MessageList messages={shown.current} busy={busy} running={running} />
      )}
      <div className="mx-auto w-full max-w-3xl px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] md:px-6">
        <Trouble error={explained(shown.current) ? undefined : chat.error} />
        {queued && <Queue busy={busy} canSteer={can(provider, "steer")} />}
        <Unsent onSend={(id) => void sent(conversation.resend(id, start))} />
        <Composer
          box={conversation.box}
          ref={(handle) => {
            composerBox.current = handle;
          }}
          busy={busy}
          stopping={stopping}
          canSteer={can(provider, "steer") && active !== undefined}
          disabled={conversation.isDraft && list !== undefined && !provider}
          prompts={() => promptsOf(shown.current)}
          onEarlier={() => void conversation.loadOlder()}
          commands={commands}
          searchFiles={searchFiles}
          onSend={() => void sent(conversation.submit("send", start))}
          onSteer={() => void sent(conversation.submit("steer", start))}
          onStop={() => void tried(conversation.stop())}
        />
        <SettingsBar />
      </div>
    </>
  );
}

const known = (models: { id: string }[] | undefined, model: string | undefined) => (models?.some((it) => it.id === model) ? model : undefined);

/** explained: the answer itself says why it failed. */
const explained = (messages: ChatMessage[]): boolean => messages.at(-1)?.parts.some((part) => part.type === "data-error") ?? false;

const asMessage = ({ id, text, files }: Message): ChatMessage => ({ id, role: "user", parts: [...files, ...(text ? [{ type: "text" as const, text }] : [])] });

function Trouble({ error }: { error: Error | undefined }) {
  const conversation = useConversation();
  if (!error) return null;
  const refused = error instanceof Problem;
  const lost = !refused && error instanceof TypeError;
  return (
    <div className="mb-2">
      <Notice
        tone={lost ? "warn" : "bad"}
        action={
          !lost && (
            <Button onClick={() => void tried(conversation.retry())}>
              <RetryIcon className="size-3.5" />
              {t("chat.retry")}
            </Button>
          )
        }
      >
        {lost ? t("chat.lost") : error.message}
        {refused && error.hint && <p>{error.hint}</p>}
        {refused && error.trace && <span className="ml-2 font-mono text-[11.5px] opacity-80">{error.trace}</span>}
      </Notice>
    </div>
  );
}

/** Announcer signals a screen reader when an answer begins and ends, not every word of it. */
function Announcer({ busy }: { busy: boolean }) {
  const was = useRef(false);
  const said = useRef("");
  if (busy) said.current = t("chat.answering");
  else if (was.current) said.current = t("chat.finished");
  useEffect(() => {
    was.current = busy;
  }, [busy]);
  return (
    <p role="status" className="sr-only">
      {said.current}
    </p>
  );
}
