import { useState } from "react";
import type { FileChange } from "../api/types";
import { t } from "../i18n";
import { Badge, Button } from "../ui/controls";
import { FileIcon } from "../ui/icons";
import { useOpened } from "./row-context";

const few = 60;

export function diffStat(diff: string | undefined): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of (diff ?? "").split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++")) added++;
    else if (line.startsWith("-") && !line.startsWith("---")) removed++;
  }
  return { added, removed };
}

/** Header lines of a patch repeat what the heading says. A new file may come as its bare text. */
function linesOf(change: FileChange): string[] {
  const lines = (change.diff ?? "")
    .replace(/\n$/, "")
    .split("\n")
    .filter((line) => !/^(diff --git|index |--- |\+\+\+ |new file|deleted file|Index: |=+$)/.test(line));
  const patch = lines.some((line) => line.startsWith("@@"));
  if (patch || change.kind === "update") return lines;
  if (lines.every((line) => line === "" || /^[+-]/.test(line))) return lines;
  const sign = change.kind === "delete" ? "-" : "+";
  return lines.map((line) => sign + line);
}

const tone = (line: string): string => {
  if (line.startsWith("@@")) return "text-faint bg-raised";
  if (line.startsWith("+")) return "bg-ok-soft text-ok";
  if (line.startsWith("-")) return "bg-bad-soft text-bad";
  return "";
};

/** Diff shows one changed file; bare leaves out the heading where the path already stands above. */
export function Diff({ change, bare = false }: { change: FileChange; bare?: boolean }) {
  const [chosen, setAll] = useState(false);
  const all = useOpened() || chosen;
  const lines = change.diff ? linesOf(change) : [];
  const { added, removed } = diffStat(lines.join("\n"));
  const visible = all ? lines : lines.slice(0, few);
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-code">
      <div className={bare ? "hidden" : "flex items-center gap-2 border-b border-line bg-raised px-2.5 py-1 text-[12.5px]"}>
        <FileIcon className="size-3.5 text-faint" />
        <span className="min-w-0 flex-1 truncate font-mono text-[12px]" title={change.path}>
          {change.path}
        </span>
        {change.move && <span className="min-w-0 truncate text-muted">{t("part.moved", { path: change.move })}</span>}
        {change.kind === "add" && <Badge tone="ok">{t("part.added")}</Badge>}
        {change.kind === "delete" && <Badge tone="bad">{t("part.deleted")}</Badge>}
        <span className="shrink-0 font-mono text-[11.5px]">
          <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
        </span>
      </div>
      {lines.length ? (
        <pre className="max-h-96 overflow-auto py-1 font-mono text-[12px] leading-[1.5]" tabIndex={0} aria-label={change.path}>
          {visible.map((line, index) => (
            <div key={index} className={`min-w-max px-2.5 ${tone(line)}`}>
              {line || " "}
            </div>
          ))}
        </pre>
      ) : (
        <p className="px-2.5 py-1.5 text-[12.5px] text-faint">{t("part.noDiff")}</p>
      )}
      {lines.length > few && (
        <Button look="quiet" className="w-full rounded-none" onClick={() => setAll(!all)}>
          {all ? t("common.less") : `${t("common.show")} (${lines.length})`}
        </Button>
      )}
    </div>
  );
}
