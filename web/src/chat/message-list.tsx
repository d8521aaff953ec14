import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { ChatMessage } from "../api/types";
import { t } from "../i18n";
import { useStore } from "../state/store";
import { useRunTime } from "../state/times";
import { Boundary } from "../ui/boundary";
import { Badge, Button, CopyButton } from "../ui/controls";
import { DownIcon, LinkIcon, RetryIcon } from "../ui/icons";
import { count, moment, span } from "../ui/time";
import { TimeBar } from "../ui/time-bar";
import { IconButton } from "../ui/controls";
import { tried } from "../ui/toast";
import { copyLink } from "../keys/deeds";
import { anchorOf } from "../state/anchor";
import { route } from "../state/route";
import { Again, Edit } from "./branch";
import { useConversation, useReading, useShared, useSide } from "./context";
import { FindBar } from "./find/bar";
import { find } from "./find/state";
import { useFinder } from "./find/use-finder";
import { Part } from "./part";
import { FilePart, Sources } from "./parts/small";
import { OpenContext } from "./row-context";
import { guess, type Row, rowsOf } from "./rows";
import { isOf, useAnchor } from "./use-anchor";

const nearEnd = 60; // pixels that still count as reading the newest
const holding = 1500; // ms in which what is around a place may still change
const nearTop = 800; // pixels before the top at which earlier messages are fetched

/**
 * MessageList draws only the rows in sight. It follows the newest text while the reader is at the end and stays where it
 * is when the reader went up, also when earlier messages arrive above.
 */
export function MessageList({ messages, busy, running }: { messages: ChatMessage[]; busy: boolean; running: boolean }) {
  const conversation = useReading();
  const history = useStore(conversation.history);
  const scroller = useRef<HTMLDivElement>(null);
  const [away, setAway] = useState(false);
  const rows = useMemo(() => rowsOf(messages, { more: !!history.cursor, busy }), [messages, history.cursor, busy]);

  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => guess(rows[index]),
    getItemKey: (index) => rows[index]!.key,
    overscan: 6,
    paddingStart: 20,
    paddingEnd: 20,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: nearEnd,
  });

  // Pinned is the reader's wish to see the newest. Only the reader takes it back, by going up: that the end is out of sight
  // proves nothing, since text may grow by more than a screen before a scroll is heard of.
  const pinned = useRef(true);
  const seen = useRef({ top: 0, height: 0 });
  const toEnd = (behavior?: "smooth") => {
    pinned.current = true;
    list.scrollToEnd({ behavior: behavior ?? "auto" });
  };

  // The first rows of a chat are its newest: begin at the end.
  const placed = useRef(false);
  useEffect(() => {
    if (placed.current || rows.length === 0) return;
    placed.current = true;
    if (!anchorOf(route.get())) toEnd();
  }, [rows.length]);

  const places = useRef(new Map<string, number>());
  places.current = useMemo(() => new Map(rows.map((row, index) => [row.key, index])), [rows]);
  // Rows that arrive and rows that are measured move the place of a jump: it is held until it is reached, or the reader moves.
  const held = useRef(0);
  const jump = useCallback(
    (key: string, align: "start" | "center" = "center") => {
      const until = Date.now() + holding;
      const hold = () => {
        const [index, box] = [places.current.get(key), scroller.current?.getBoundingClientRect()];
        if (index === undefined || !box || Date.now() > until) return;
        const row = scroller.current!.querySelector(`[data-row="${CSS.escape(key)}"]`)?.getBoundingClientRect();
        const seen = row && row.top < box.bottom - 40 && (align === "start" ? row.top > box.top - 8 : row.bottom > box.top + 8);
        if (!seen) list.scrollToIndex(index, { align });
        held.current = requestAnimationFrame(hold);
      };
      pinned.current = false;
      cancelAnimationFrame(held.current);
      hold();
    },
    [list],
  );
  const release = () => cancelAnimationFrame(held.current);
  useEffect(() => release, []);
  const finder = useFinder(rows, scroller, jump);
  const marked = useAnchor(rows, jump);

  // A user who sends wants to see what happens next, wherever they were reading.
  const sent = messages.findLast((message) => message.role === "user");
  const mine = sent && !sent.metadata?.run_id ? sent.id : undefined;
  useEffect(() => {
    if (mine) toEnd();
  }, [mine]);

  // The end stays in sight when the text grows, and when the list itself gets smaller: a queue appears, a keyboard opens.
  const follow = () => {
    const box = scroller.current;
    if (box && placed.current && pinned.current) box.scrollTop = box.scrollHeight;
  };
  const total = list.getTotalSize();
  useLayoutEffect(follow, [total]);
  useEffect(() => {
    const resized = new ResizeObserver(follow);
    resized.observe(scroller.current!);
    return () => resized.disconnect();
  }, []);

  // Measured on the element: the list hears of a scroll later than we do.
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!;
    const left = scrollHeight - scrollTop - clientHeight;
    const up = scrollTop < seen.current.top && scrollHeight >= seen.current.height; // text that shrinks moves it too
    seen.current = { top: scrollTop, height: scrollHeight };
    if (left <= nearEnd) pinned.current = true;
    else if (up) pinned.current = false;
    setAway(!pinned.current && left > nearEnd * 2);
    if (placed.current && scrollTop < nearTop) void conversation.loadOlder();
  };
  // A first page that does not fill the screen cannot be scrolled: fetch on.
  useEffect(() => {
    const box = scroller.current;
    if (box && history.state === "idle" && !history.problem && history.cursor && box.scrollTop < nearTop) void conversation.loadOlder();
  }, [conversation, history, rows.length]);

  const items = list.getVirtualItems();
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        onScroll={scrolled}
        onWheel={(event) => {
          release();
          if (event.deltaY < 0 && event.currentTarget.scrollTop > 0) pinned.current = false;
        }}
        onPointerDown={release}
        onKeyDown={release}
        tabIndex={0}
        role="region"
        aria-label={t("chat.label")}
        className="h-full overflow-y-auto overflow-x-hidden [overflow-anchor:none]"
      >
        <div className="relative w-full" style={{ height: total }}>
          <div className="absolute inset-x-0 top-0" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
            {items.map((item) => {
              const row = rows[item.index]!;
              return (
                <div
                  key={item.key}
                  data-index={item.index}
                  data-row={row.key}
                  data-marked={marked !== undefined && "message" in row && isOf(row.message, marked) ? true : undefined}
                  ref={list.measureElement}
                  className="mx-auto w-full max-w-3xl px-4 pb-3 data-marked:bg-accent-soft data-marked:shadow-[inset_3px_0_0_var(--accent)] md:px-6"
                >
                  <OpenContext value={finder.opened.has(row.key)}>
                    <Boundary of="part" about={row.kind === "part" ? row.part : row.key}>
                      <Line row={row} running={running} />
                    </Boundary>
                  </OpenContext>
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {finder.on && (
        <FindBar
          count={finder.count}
          at={finder.at}
          more={finder.more}
          onStep={finder.step}
          onClose={() => {
            find.close();
            scroller.current?.focus({ preventScroll: true });
          }}
        />
      )}
      {away && (
        <IconButton
          label={t("chat.bottom")}
          className="absolute bottom-3 left-1/2 -translate-x-1/2 border border-line bg-surface shadow-pop"
          onClick={() => toEnd("smooth")}
        >
          <DownIcon />
        </IconButton>
      )}
    </div>
  );
}

function Line({ row, running }: { row: Row; running: boolean }) {
  switch (row.kind) {
    case "top":
      return <Top more={row.more} />;
    case "user":
      return <UserMessage message={row.message} />;
    case "step":
      return (
        <p className="flex items-center gap-3 text-[11.5px] text-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
          {t("chat.step", { n: row.number })}
        </p>
      );
    case "part":
      return <Part part={row.part} live={row.live} paired={row.paired} />;
    case "sources":
      return <Sources parts={row.parts} />;
    case "foot":
      return <Foot message={row.message} />;
    case "wait":
      return (
        <p className="flex items-center gap-2 py-0.5 text-[13px] text-muted">
          <span className="pulse size-2 rounded-full bg-accent" />
          {t(running ? "chat.thinking" : "chat.sending")}
        </p>
      );
  }
}

/** Top says whether earlier messages come, there are none, or they could not be read. */
function Top({ more }: { more: boolean }) {
  const conversation = useReading();
  const problem = useStore(conversation.history, (it) => it.problem);
  return (
    <p className="py-1 text-center text-[12px] text-faint">
      {!more ? t("chat.beginning") : problem ? `${t("chat.olderFailed")}: ${problem.message}` : t("chat.older")}
      {more && problem && (
        <Button look="quiet" onClick={() => void conversation.loadOlder()}>
          {t("app.again")}
        </Button>
      )}
    </p>
  );
}

/** LinkButton copies the address of a message; one that thole does not have yet has none. */
function LinkButton({ message, className = "" }: { message: ChatMessage; className?: string }) {
  const { id, shared } = useReading();
  if (shared || !message.metadata?.run_id) return null;
  return (
    <IconButton label={t("chat.link")} className={`size-7 ${className}`} onClick={() => void copyLink(id, message.id)}>
      <LinkIcon className="size-3.5" />
    </IconButton>
  );
}

const quiet = "md:opacity-0 focus-visible:opacity-100 group-hover:opacity-100";
const textOf = (message: ChatMessage): string => message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

const UserMessage = memo(function UserMessage({ message }: { message: ChatMessage }) {
  const shared = useShared();
  return (
    <div className="group flex flex-col items-end gap-1.5 pt-3">
      <span className="sr-only">{t("chat.you")}</span>
      {message.parts.map((part, index) =>
        part.type === "text" && part.text ? (
          <div key={index} className="max-w-[85%] whitespace-pre-wrap rounded-2xl bg-raised px-3.5 py-2 leading-[1.6] wrap-anywhere">
            {part.text}
          </div>
        ) : part.type === "file" ? (
          <FilePart key={index} part={part} />
        ) : null,
      )}
      <div className="-my-1 flex w-full flex-wrap items-center justify-end">
        <CopyButton text={textOf(message)} className={quiet} />
        <LinkButton message={message} className={quiet} />
        {!shared && <Edit message={message} className={quiet} />}
      </div>
    </div>
  );
});

function Retry() {
  const conversation = useConversation();
  return (
    <IconButton label={t("chat.retry")} className="size-7" onClick={() => void tried(conversation.retry())}>
      <RetryIcon className="size-3.5" />
    </IconButton>
  );
}

function Foot({ message }: { message: ChatMessage }) {
  const shared = useShared();
  const data = message.metadata ?? {};
  const text = textOf(message);
  const tokens = data.usage ? data.usage.input + data.usage.output : 0;
  const last = useSide((side) => side.run?.id === message.id || side.run === undefined);
  const time = useRunTime(message.id, data.time);
  return (
    <div className="-ml-1.5 flex min-h-7 flex-wrap items-center gap-x-2 text-[11.5px] text-faint">
      {text && <CopyButton text={text} />}
      <LinkButton message={message} />
      {data.ended_at && !shared && <Again message={message} />}
      {last && !shared && data.outcome && data.outcome !== "completed" && <Retry />}
      {data.outcome === "failed" && <Badge tone="bad">{t("run.failed")}</Badge>}
      {data.outcome === "interrupted" && <Badge tone="warn">{t("run.interrupted")}</Badge>}
      {data.provider && <span>{[data.provider, data.model].filter(Boolean).join(" · ")}</span>}
      {data.created_at && data.ended_at && <span className="tabular-nums">{span(Date.parse(data.ended_at) - Date.parse(data.created_at))}</span>}
      {time && <TimeBar time={time} className="w-16" />}
      {tokens > 0 && <span className="tabular-nums">{t("run.tokens", { n: count(tokens) })}</span>}
      {data.created_at && (
        <time className="hidden sm:inline" dateTime={data.created_at}>
          {moment(data.created_at)}
        </time>
      )}
    </div>
  );
}
