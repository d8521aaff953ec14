import { isToolUIPart } from "ai";
import { memo } from "react";
import type { ChatPart } from "../api/types";
import { t } from "../i18n";
import { AskCard } from "./ask-card";
import { ErrorPart, FilePart, Reasoning, TodoPart } from "./parts/small";
import { CommandPart, FileChangePart, Json, ToolPart } from "./parts/tool";
import { Prose } from "./prose";
import { samePart } from "./rows";

const isPlan = (part: ChatPart): boolean =>
  part.type === "text" && (part.providerMetadata as { thole?: { kind?: string } } | undefined)?.thole?.kind === "plan";

function Draw({ part, live, paired }: { part: ChatPart; live: boolean; paired?: boolean }) {
  switch (part.type) {
    case "text":
      if (!isPlan(part)) return <Prose text={part.text} />;
      return (
        <section aria-label={t("part.plan")} className="rounded-xl border border-line bg-surface px-3.5 py-3">
          <p className="mb-1 text-[11.5px] font-medium text-accent">{t("part.plan")}</p>
          <Prose text={part.text} />
        </section>
      );
    case "reasoning":
      return <Reasoning text={part.text} live={live && part.state === "streaming"} />;
    case "file":
      return <FilePart part={part} />;
    case "tool-command":
      return <CommandPart part={part} />;
    case "tool-file_change":
      return <FileChangePart part={part} />;
    case "data-ask":
      return <AskCard question={part.data} paired={paired} />;
    case "data-todo":
      return <TodoPart todos={part.data.todos} live={live} />;
    case "data-error":
      return <ErrorPart error={part.data} />;
    case "data-steer":
      return (
        <div className="flex flex-col items-end">
          <p className="mb-0.5 text-[11.5px] text-faint">{t("chat.steered")}</p>
          <div className="max-w-[85%] whitespace-pre-wrap rounded-2xl border border-accent/30 bg-accent-soft px-3.5 py-2 wrap-anywhere">{part.data.text}</div>
        </div>
      );
    case "data-note":
      return (
        <p className="flex items-center gap-3 text-[12.5px] text-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
          <span className="max-w-[80%] text-center wrap-anywhere">
            {part.data.kind === "compaction" ? part.data.text || t("part.compaction") : part.data.text}
          </span>
        </p>
      );
    default:
      if (isToolUIPart(part)) return <ToolPart part={part} />;
      if (part.type.startsWith("data-")) return <Json label={`${t("part.data")}: ${part.type.slice(5)}`} value={(part as { data?: unknown }).data} />;
      return null;
  }
}

export const Part = memo(Draw, (a, b) => a.live === b.live && a.paired === b.paired && samePart(a.part, b.part));
