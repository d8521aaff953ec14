import { useState } from "react";
import type { FileChange } from "../api/types";
import { t } from "../i18n";
import { Badge, Button } from "../ui/controls";
import { FileIcon } from "../ui/icons";
import { diffStat, linesOf, type DiffLine } from "./diff-lines";
import { useOpened } from "./row-context";

// An approval shows more lines without a click, and all of each line: spaces do not push the end of one out of sight.
const few = 60;
const many = 1000;

const tones: Record<DiffLine["kind"], string> = { same: "", added: "bg-ok-soft text-ok", removed: "bg-bad-soft text-bad", hunk: "text-faint bg-raised" };

/** Diff shows one changed file; bare leaves out the heading where the path already stands above, and asked is in a question. */
export function Diff({ change, bare = false, asked = false }: { change: FileChange; bare?: boolean; asked?: boolean }) {
  const [chosen, setAll] = useState(false);
  const all = useOpened() || chosen;
  const lines = linesOf(change);
  const { added, removed } = diffStat([change]);
  const first = asked ? many : few;
  const visible = all ? lines : lines.slice(0, first);
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-code">
      <div className={bare ? "hidden" : "flex items-center gap-2 border-b border-line bg-raised px-2.5 py-1 text-[12.5px]"}>
        <FileIcon className="size-3.5 text-faint" />
        <span className="min-w-0 flex-1 font-mono text-[12px] wrap-anywhere">{change.path}</span>
        {change.move && <span className="min-w-0 text-muted wrap-anywhere">{t("part.moved", { path: change.move })}</span>}
        {change.kind === "add" && <Badge tone="ok">{t("part.added")}</Badge>}
        {change.kind === "delete" && <Badge tone="bad">{t("part.deleted")}</Badge>}
        <span className="shrink-0 font-mono text-[11.5px]">
          <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
        </span>
      </div>
      {lines.length ? (
        <pre className="max-h-96 overflow-auto py-1 font-mono text-[12px] leading-[1.5]" tabIndex={0} aria-label={change.path}>
          {visible.map((line, index) => (
            <div key={index} className={`px-2.5 ${asked ? "whitespace-break-spaces wrap-anywhere" : "min-w-max"} ${tones[line.kind]}`}>
              {line.text || " "}
            </div>
          ))}
        </pre>
      ) : (
        <p className="px-2.5 py-1.5 text-[12.5px] text-faint">{t("part.noDiff")}</p>
      )}
      {lines.length > first && (
        <Button look="quiet" className="w-full rounded-none" onClick={() => setAll(!all)}>
          {all ? t("common.less") : `${t("common.show")} (${lines.length})`}
        </Button>
      )}
    </div>
  );
}
