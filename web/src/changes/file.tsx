import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { get, query, uuid } from "../api/http";
import type { ChangedFile, Changes } from "../api/types";
import { t, type Key } from "../i18n";
import "../i18n/later";
import { prefs } from "../state/prefs";
import { useStore } from "../state/store";
import { Badge, Button, IconButton, type Tone } from "../ui/controls";
import { ChevronIcon, CloseIcon, FileIcon } from "../ui/icons";
import { tried } from "../ui/toast";
import { Counts } from "./changes";
import { commentsOf } from "./comments";
import { type Comment, hunksOf, type Line, pairsOf, placeOf, plainPath } from "./patch";

const large = 400; // lines; a larger file waits to be asked for
const tones: Record<ChangedFile["kind"], Tone> = { added: "ok", deleted: "bad", modified: "neutral", renamed: "accent", type: "warn" };

/** FileView is one changed file. Lines take comments: Enter or a click on a number, with Shift up to another line. */
export function FileView({ file, session, turn, state }: { file: ChangedFile; session: string; turn: number; state: string }) {
  const [open, setOpen] = useState(file.added + file.removed <= large && !file.cut);
  const [more, setMore] = useState<{ file?: ChangedFile; state: string }>();
  const whole = more?.state === state ? more.file : undefined;
  const patch = whole?.patch ?? file.patch;
  const isCut = (whole ?? file).cut;
  const load = async () => {
    const path = `/sessions/${session}/changes${query({ turn: turn || undefined, path: file.path, patches: true })}`;
    const view = await tried(get<Changes>(path));
    if (view) setMore({ file: view.files.find((it) => it.path === file.path), state });
  };
  return (
    <section aria-label={plainPath(file.path)} className="overflow-hidden rounded-lg border border-line bg-code">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-2 border-b border-line bg-raised px-2.5 py-1 text-left text-[12.5px] hover:bg-hover"
      >
        <ChevronIcon className={`size-3 transition-transform ${open ? "rotate-90" : ""}`} />
        <FileIcon className="size-3.5 text-faint" />
        <span className="min-w-0 flex-1 font-mono text-[12px] wrap-anywhere">
          {file.old_path && <span className="text-muted">{plainPath(file.old_path)} → </span>}
          {plainPath(file.path)}
        </span>
        {modeOf(file) && <Badge>{modeOf(file)}</Badge>}
        {file.kind !== "modified" && <Badge tone={tones[file.kind]}>{t(`changes.kind.${file.kind}` as Key)}</Badge>}
        {file.binary ? <Badge>{t("changes.binary")}</Badge> : <Counts added={file.added} removed={file.removed} />}
      </button>
      {open && patch && <Lines patch={patch} path={file.path} session={session} />}
      {open && !patch && (
        <p className="px-2.5 py-1.5 text-[12.5px] text-muted">{t(file.binary ? "changes.noText" : isCut ? "changes.cut" : "changes.noLines")}</p>
      )}
      {open && isCut && !whole && !file.path_bytes && (
        <Button look="quiet" className="w-full rounded-none" onClick={() => void load()}>
          {t("changes.load")}
        </Button>
      )}
    </section>
  );
}

const forms: Record<string, Key> = { "100755": "changes.executable", "120000": "changes.link", "160000": "changes.commit" };

function modeOf(file: ChangedFile): string | undefined {
  if (file.old_mode && file.mode) return `${file.old_mode} → ${file.mode}`;
  const form = forms[file.mode ?? ""];
  return form && t(form);
}

interface Spot {
  side: Comment["side"];
  from: number;
  to: number;
}

const within = (spot: Spot, side: Spot["side"], n: number): boolean =>
  spot.side === side && n >= Math.min(spot.from, spot.to) && n <= Math.max(spot.from, spot.to);

/** Lines of a patch. One of their numbers is a stop of the Tab key; arrows go on from there, and Shift takes lines along. */
function Lines({ patch, path, session }: { patch: string; path: string; session: string }) {
  const split = useStore(prefs, (it) => it.split === true);
  const hunks = useMemo(() => hunksOf(patch), [patch]);
  const store = commentsOf(session);
  const all = useStore(store);
  const comments = all.filter((it) => it.path === path);
  const [spot, setSpot] = useState<Spot>();
  const box = useRef<HTMLDivElement>(null);
  const fresh = useRef("");

  const comment = ({ side, from, to }: Spot) => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    const code = hunks.flatMap((it) => it.lines).filter((it) => it[side] !== undefined && it[side] >= first && it[side] <= last);
    fresh.current = uuid();
    store.set((old) => [...old, { id: fresh.current, path, side, from: first, to: last, code: code.map((it) => it.text), text: "" }]);
    setSpot(undefined);
  };
  const click = (side: Spot["side"], n: number, shift: boolean) => {
    if (shift && spot?.side === side) return comment({ ...spot, to: n });
    if (shift) return setSpot({ side, from: n, to: n });
    comment({ side, from: n, to: n });
  };
  const keys = (event: KeyboardEvent) => {
    const at = event.target as HTMLElement;
    if (!at.dataset.line) return;
    const [side, n] = [at.dataset.side as Spot["side"], Number(at.dataset.line)];
    if (event.key === "Enter" && spot) {
      event.preventDefault();
      return comment({ ...spot, to: n });
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [...(box.current?.querySelectorAll<HTMLElement>("[data-line]") ?? [])].filter((it) => !event.shiftKey || it.dataset.side === side);
    const next = stops[stops.indexOf(at) + step];
    next?.focus();
    if (event.shiftKey && next) setSpot((old) => ({ side, from: old?.side === side ? old.from : n, to: Number(next.dataset.line) }));
    else setSpot(undefined);
  };
  const first = hunks[0]?.lines.find((it) => it.kind !== "note");
  const stop = first && (first.now !== undefined ? `now ${first.now}` : `old ${first.old}`);

  const number = (line: Line | undefined, side: Spot["side"], takes: boolean) => {
    const n = line?.[side];
    if (n === undefined || !takes) return <span className={gutter}>{n}</span>;
    return (
      <button
        type="button"
        data-line={n}
        data-side={side}
        tabIndex={stop === `${side} ${n}` ? 0 : -1}
        aria-label={t("changes.commentOn", { n })}
        onClick={(event) => click(side, n, event.shiftKey)}
        className={`${gutter} hover:bg-accent-soft hover:text-accent ${spot && within(spot, side, n) ? "bg-accent-soft text-accent" : ""}`}
      >
        {n}
      </button>
    );
  };
  const after = (line: Line | undefined, side: Spot["side"]) =>
    line?.[side] === undefined
      ? null
      : comments
          .filter((it) => it.side === side && it.to === line[side])
          .map((it) => <Note key={it.id} comment={it} session={session} fresh={it.id === fresh.current} />);

  return (
    <div ref={box} onKeyDown={keys} className="overflow-x-auto font-mono text-[12px] leading-[1.5]" role="group" aria-label={t("changes.lines")}>
      {hunks.map((hunk, at) => (
        <div key={at} className={split ? "" : "min-w-max"}>
          <div className="bg-raised px-2.5 text-faint whitespace-pre wrap-anywhere">{hunk.header}</div>
          {split
            ? pairsOf(hunk.lines).map(({ left, right }, n) => (
                <div key={n}>
                  <div className="grid grid-cols-2">
                    <Half line={left} number={number(left, "old", left?.kind === "removed")} />
                    <Half line={right} number={number(right, "now", true)} />
                  </div>
                  {left?.kind === "removed" && after(left, "old")}
                  {after(right, "now")}
                </div>
              ))
            : hunk.lines.map((line, n) => (
                <div key={n}>
                  <div className={`flex ${tone(line)}`} data-row={line.kind}>
                    {number(line, "old", line.kind === "removed")}
                    {number(line, "now", true)}
                    <span aria-hidden="true" className="w-4 shrink-0 select-none text-center">
                      {signs[line.kind]}
                    </span>
                    <span className="sr-only">{line.kind === "added" || line.kind === "removed" ? t(`changes.line.${line.kind}`) : ""}</span>
                    <span className="whitespace-pre pr-3" data-text>
                      {line.text}
                    </span>
                  </div>
                  {line.kind === "removed" && after(line, "old")}
                  {after(line, "now")}
                </div>
              ))}
        </div>
      ))}
    </div>
  );
}

const gutter = "w-10 shrink-0 select-none border-r border-line px-1 text-right text-[11px] leading-[18px] text-faint";
const signs: Record<Line["kind"], string> = { same: " ", added: "+", removed: "-", note: "\\" };
const tone = (line: Line | undefined): string => ({ same: "", note: "text-faint", added: "bg-ok-soft", removed: "bg-bad-soft" })[line?.kind ?? "same"];

function Half({ line, number }: { line?: Line; number: React.ReactNode }) {
  return (
    <div className={`flex min-w-0 border-r border-line last:border-r-0 ${line ? tone(line) : "bg-raised"}`}>
      {number}
      <span className="sr-only">{line?.kind === "added" || line?.kind === "removed" ? t(`changes.line.${line.kind}`) : ""}</span>
      <span className="min-w-0 flex-1 whitespace-pre-wrap px-1.5 wrap-anywhere">{line?.text}</span>
    </div>
  );
}

/** Note is one comment while it is being written. */
function Note({ comment, session, fresh }: { comment: Comment; session: string; fresh: boolean }) {
  const store = commentsOf(session);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (fresh) area.current?.focus();
  }, [fresh]);
  const drop = () => store.set((old) => old.filter((it) => it.id !== comment.id));
  return (
    <div className="sticky left-0 max-w-[min(36rem,90vw)] border-y border-line bg-surface p-2 font-sans">
      <div className="mb-1 flex items-center justify-between gap-2 text-[12px] text-muted">
        <span className="min-w-0 truncate font-mono">{placeOf(comment)}</span>
        <IconButton label={t("changes.dropComment")} className="size-6" onClick={drop}>
          <CloseIcon className="size-3" />
        </IconButton>
      </div>
      <textarea
        ref={area}
        rows={2}
        aria-label={t("changes.commentLabel")}
        placeholder={t("changes.commentText")}
        value={comment.text}
        onChange={(event) => store.set((old) => old.map((it) => (it.id === comment.id ? { ...it, text: event.target.value } : it)))}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || comment.text.trim()) return;
          event.stopPropagation();
          drop();
        }}
        className="field-sizing-content block min-h-14 w-full rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px]"
      />
    </div>
  );
}
