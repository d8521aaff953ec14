import type { DynamicToolUIPart, ToolUIPart } from "ai";
import { type ReactNode, useState } from "react";
import type { FileChange } from "../../api/types";
import { t } from "../../i18n";
import { picture } from "../../ui/address";
import { Badge, Button, CopyButton, type Tone } from "../../ui/controls";
import { Modal } from "../../ui/dialog";
import { later } from "../../ui/later";
import { useReading } from "../context";
import { ChevronIcon, FileIcon, Spinner, TerminalIcon, ToolIcon } from "../../ui/icons";
import { line, plain } from "../../ui/plain";
import { Terminal } from "../../ui/terminal";
import { span } from "../../ui/time";
import { Diff } from "../diff";
import { diffStat } from "../diff-lines";
import { useOpened } from "../row-context";

export type AnyTool = ToolUIPart | DynamicToolUIPart;

const running = (part: AnyTool): boolean =>
  part.state === "input-streaming" ||
  part.state === "input-available" ||
  part.state === "approval-responded" ||
  (part.state === "output-available" && part.preliminary === true);

function stateOf(part: AnyTool): { tone: Tone; text: string } | undefined {
  switch (part.state) {
    case "approval-requested":
      return { tone: "warn", text: t("part.waiting") };
    case "output-denied":
      return { tone: "neutral", text: t("part.denied") };
    case "output-error":
      return { tone: "bad", text: t("part.failed") };
    default:
      return undefined;
  }
}

const parentOf = (part: AnyTool): string | undefined => (part.callProviderMetadata as { thole?: { parent?: string } } | undefined)?.thole?.parent;

/** Fold is a line that opens. It opens by itself when there is something to look at, until the reader decides otherwise. */
function Fold({
  part,
  icon,
  title,
  note,
  open,
  children,
}: {
  part: AnyTool;
  icon: ReactNode;
  title: ReactNode;
  note?: ReactNode;
  open: boolean;
  children?: ReactNode;
}) {
  const [chosen, choose] = useState<boolean>();
  const wanted = useOpened();
  const isOpen = chosen ?? (wanted || open);
  const state = stateOf(part);
  return (
    <div className={`overflow-hidden rounded-xl border border-line bg-surface ${parentOf(part) ? "ml-5" : ""}`}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => choose(!isOpen)}
        className="flex min-h-9 w-full items-center gap-2 px-3 py-1 text-left text-[13px] hover:bg-hover"
      >
        <span className="text-faint">{running(part) ? <Spinner className="size-4 text-accent" /> : icon}</span>
        <span className="min-w-0 flex-1 truncate">{title}</span>
        {parentOf(part) && <Badge>{t("part.subagent")}</Badge>}
        {note}
        {state && <Badge tone={state.tone}>{state.text}</Badge>}
        {running(part) && <span className="sr-only">{t("part.running")}</span>}
        <ChevronIcon className={`size-3.5 text-faint transition-transform ${isOpen ? "rotate-90" : ""}`} />
      </button>
      {isOpen && <div className="space-y-2 border-t border-line px-3 py-2.5">{children}</div>}
    </div>
  );
}

interface CommandOutput {
  output?: string;
  output_dropped?: number;
  exit_code?: number;
  duration_ms?: number;
}

export function CommandPart({ part }: { part: AnyTool }) {
  const input = (part.input ?? {}) as { command?: string; dir?: string };
  const output = (part.state === "output-available" ? part.output : undefined) as CommandOutput | undefined;
  const failed = output?.exit_code !== undefined && output.exit_code !== 0;
  return (
    <Fold
      part={part}
      icon={<TerminalIcon />}
      title={<code className="font-mono text-[12.5px]">{line(input.command ?? t("part.command"))}</code>}
      open={running(part) || failed || part.state === "output-error"}
      note={
        <>
          {output?.duration_ms !== undefined && output.duration_ms >= 1000 && (
            <span className="shrink-0 text-[11.5px] tabular-nums text-faint">{span(output.duration_ms)}</span>
          )}
          {output?.exit_code !== undefined && <Badge tone={failed ? "bad" : "ok"}>{t("part.exit", { code: output.exit_code })}</Badge>}
        </>
      }
    >
      <div className="flex items-start gap-1">
        <pre className="min-w-0 flex-1 whitespace-pre-wrap break-all font-mono text-[12.5px]">
          <span className="select-none text-faint">$ </span>
          {plain(input.command ?? "")}
        </pre>
        <CopyButton text={input.command ?? ""} />
      </div>
      {input.dir && <p className="truncate font-mono text-[11.5px] text-faint">{input.dir}</p>}
      <Output item={part.toolCallId} text={output?.output} dropped={output?.output_dropped} waiting={running(part)} />
      <ErrorText part={part} />
    </Fold>
  );
}

const WholeOutput = later(() => import("./whole-output"));

function Output({ item, text, dropped, waiting }: { item: string; text?: string; dropped?: number; waiting: boolean }) {
  const { id, shared } = useReading();
  const [all, setAll] = useState(false);
  if (!text) return waiting ? null : <p className="text-[12.5px] text-faint">{t("part.noOutput")}</p>;
  return (
    <div className="rounded-lg border border-line bg-code">
      {!!dropped && (
        <p className="flex items-center justify-between gap-2 border-b border-line px-2.5 py-1 text-[11.5px] text-faint">
          {t("part.dropped", { n: dropped })}
          {!shared && (
            <Button look="quiet" aria-haspopup="dialog" onClick={() => setAll(true)}>
              {t("common.show")}
            </Button>
          )}
        </p>
      )}
      <Modal
        open={all}
        label={t("output.whole")}
        onClose={() => setAll(false)}
        className="m-auto h-[min(52rem,92dvh)] w-[min(72rem,calc(100vw-1rem))] overflow-hidden rounded-2xl border border-line shadow-pop"
      >
        <WholeOutput session={id} item={item} onClose={() => setAll(false)} />
      </Modal>
      <pre className="max-h-72 overflow-auto px-2.5 py-2 font-mono text-[12px] leading-[1.5]" tabIndex={0} aria-label={t("part.output")}>
        <Terminal text={text} />
      </pre>
    </div>
  );
}

function ErrorText({ part }: { part: AnyTool }) {
  if (part.state !== "output-error" || !part.errorText) return null;
  return <p className="whitespace-pre-wrap text-[13px] text-bad wrap-anywhere"><Terminal text={part.errorText} /></p>;
}

export function FileChangePart({ part }: { part: AnyTool }) {
  const changes = ((part.input as { changes?: FileChange[] } | undefined)?.changes ?? []) as FileChange[];
  const total = diffStat(changes);
  const title = changes.length === 1 ? changes[0]!.path : t("part.files", { n: changes.length });
  return (
    <Fold
      part={part}
      icon={<FileIcon />}
      title={<span className={changes.length === 1 ? "font-mono text-[12.5px]" : ""}>{title}</span>}
      open={part.state !== "output-denied" && changes.length <= 3}
      note={
        <>
          {changes.length === 1 && changes[0]!.kind === "add" && <Badge tone="ok">{t("part.added")}</Badge>}
          {changes.length === 1 && changes[0]!.kind === "delete" && <Badge tone="bad">{t("part.deleted")}</Badge>}
          <span className="shrink-0 font-mono text-[11.5px]">
            <span className="text-ok">+{total.added}</span> <span className="text-bad">−{total.removed}</span>
          </span>
        </>
      }
    >
      {changes.map((change, index) => (
        <Diff key={index} change={change} bare={changes.length === 1 && !change.move} />
      ))}
      <ErrorText part={part} />
    </Fold>
  );
}

export function ToolPart({ part }: { part: AnyTool }) {
  const name = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
  return (
    <Fold
      part={part}
      icon={<ToolIcon />}
      title={
        <>
          <span className="font-medium">{name}</span> <span className="text-muted">{brief(part.input)}</span>
        </>
      }
      open={part.state === "output-error"}
    >
      {part.input !== undefined && <Json label={t("part.input")} value={part.input} />}
      {part.state === "output-available" && <Json label={t("part.output")} value={resultOf(part.output)} />}
      <ErrorText part={part} />
    </Fold>
  );
}

/** resultOf is a tool's result for reading: its words as they are, and pictures, which are shown by themselves, only named. */
export function resultOf(output: unknown): unknown {
  const content = Array.isArray(output) ? output : (output as { content?: unknown } | null)?.content;
  if (!Array.isArray(content) || !content.length || !content.every((it) => typeof (it as { type?: unknown } | null)?.type === "string")) return output;
  const brief = (it: { type: string; text?: string; mimeType?: string }) =>
    it.type === "text" ? it.text : it.type === "image" ? `[${it.mimeType}]` : JSON.stringify(it);
  return content.map(brief).join("\n");
}

// The one thing that distinguishes calls of a tool is mostly the first short text of its input.
function brief(input: unknown): string {
  if (typeof input !== "object" || input === null) return "";
  const first = Object.values(input).find((value) => typeof value === "string" && value.length > 0);
  return typeof first === "string" ? first.split("\n")[0]!.slice(0, 120) : "";
}

export function Json({ label, value }: { label: string; value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const data = typeof value === "string" && value.startsWith("data:") ? picture(value) : undefined;
  return (
    <div>
      <p className="mb-1 text-[11.5px] font-medium text-faint">{label}</p>
      <pre
        className="max-h-72 overflow-auto rounded-lg border border-line bg-code px-2.5 py-2 font-mono text-[12px] leading-[1.5] whitespace-pre-wrap
          wrap-anywhere"
        tabIndex={0}
        aria-label={label}
      >
        {data ? <img src={data} alt={label} className="max-h-80 max-w-full" /> : <Terminal text={text ?? ""} />}
      </pre>
    </div>
  );
}
