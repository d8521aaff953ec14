import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { download, get, query } from "../../api/http";
import type { OutputPage } from "../../api/types";
import { t } from "../../i18n";
import "../../i18n/later";
import { Button, IconButton, Notice } from "../../ui/controls";
import { CloseIcon, DownIcon, SearchIcon, Spinner, UpIcon } from "../../ui/icons";
import { Terminal } from "../../ui/terminal";
import { tried } from "../../ui/toast";
import { mark, rangesIn, reveal, wipe } from "../find/paint";

const most = 4 << 20; // bytes that a page draws; a download has more
const page = 1 << 20;

/** readAll reads an output from its beginning, and says where something is not kept. */
async function readAll(path: string, signal: AbortSignal): Promise<string> {
  let text = "";
  for (let at: number | undefined = 0; at !== undefined && text.length < most; ) {
    const part: OutputPage = await get<OutputPage>(`${path}${query({ offset: at, limit: page })}`, signal);
    if (part.offset > at) text += `\n${t("output.gap", { n: part.offset - at })}\n`;
    text += part.text;
    at = part.next;
  }
  return text;
}

/** WholeOutput is everything that a command wrote, with a search. */
export default function WholeOutput({ session, item, onClose }: { session: string; item: string; onClose: () => void }) {
  const path = `/sessions/${session}/items/${encodeURIComponent(item)}/output`;
  const [text, setText] = useState<string>();
  const [failed, setFailed] = useState<string>();
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const [wrap, setWrap] = useState(true);
  const body = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const over = new AbortController();
    readAll(path, over.signal).then(setText, (error: Error) => !over.signal.aborted && setFailed(error.message));
    return () => over.abort();
  }, [path]);

  const [ranges, setRanges] = useState<Range[]>([]);
  useEffect(() => {
    setRanges(body.current && wanted.trim() ? rangesIn(body.current, wanted) : []);
    setAt(0);
  }, [text, wanted]);
  useEffect(() => {
    mark(ranges, ranges[at]);
    if (ranges[at] && body.current) reveal(ranges[at], body.current);
    return wipe;
  }, [ranges, at, wrap]);
  const step = (by: number) => ranges.length && setAt((at + by + ranges.length) % ranges.length);
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  };
  const drawn = useMemo(() => (text === undefined ? null : <Terminal text={text} />), [text]);
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-1.5 border-b border-line px-3 py-2">
        <h2 className="mr-2 text-[13px] font-semibold">{t("part.output")}</h2>
        <label className="flex h-8 min-w-0 flex-1 items-center gap-1.5 rounded-lg border border-line bg-ground px-2 focus-within:border-accent">
          <SearchIcon className="size-3.5 text-faint" />
          <input
            autoFocus
            aria-label={t("output.search")}
            placeholder={t("output.search")}
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
            onKeyDown={keys}
            className="min-w-16 flex-1 bg-transparent text-[13px] outline-none placeholder:text-faint"
          />
          <span role="status" className="shrink-0 text-[11.5px] tabular-nums text-faint">
            {wanted.trim() && (ranges.length ? t("find.count", { at: at + 1, n: ranges.length }) : t("history.none"))}
          </span>
        </label>
        <IconButton label={t("find.previous")} disabled={!ranges.length} onClick={() => step(-1)}>
          <UpIcon />
        </IconButton>
        <IconButton label={t("find.next")} disabled={!ranges.length} onClick={() => step(1)}>
          <DownIcon />
        </IconButton>
        <Button aria-pressed={wrap} look={wrap ? "plain" : "quiet"} onClick={() => setWrap(!wrap)}>
          {t("output.wrap")}
        </Button>
        <Button onClick={() => void tried(download(`${path}/text`))}>{t("output.download")}</Button>
        <IconButton label={t("common.close")} onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </div>
      {failed !== undefined ? (
        <div className="p-4">
          <Notice tone="bad">{failed}</Notice>
        </div>
      ) : text === undefined ? (
        <p className="flex flex-1 items-center justify-center gap-2 text-muted">
          <Spinner /> {t("app.loading")}
        </p>
      ) : (
        <pre
          ref={body}
          tabIndex={0}
          aria-label={t("output.whole")}
          className={`min-h-0 flex-1 overflow-auto bg-code px-3 py-2 font-mono text-[12px] leading-[1.5] ${wrap ? "whitespace-pre-wrap wrap-anywhere" : ""}`}
        >
          {drawn}
        </pre>
      )}
    </div>
  );
}
