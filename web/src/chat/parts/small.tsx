import type { FileUIPart } from "ai";
import { useState } from "react";
import type { RunError, Todo } from "../../api/types";
import { t } from "../../i18n";
import { translated } from "../../i18n/phrases";
import { picture } from "../../ui/address";
import { Notice } from "../../ui/controls";
import { ChevronIcon, FileIcon, ListIcon, ThinkIcon } from "../../ui/icons";
import { Out } from "../../ui/out";
import { TodoLine } from "../../panels/todo-line";
import { Prose } from "../prose";
import { useShared } from "../context";
import { remedyOf } from "../remedy";
import { useOpened } from "../row-context";
import type { SourcePart } from "../rows";

/** Reasoning is open while it is being written and folds away afterwards, unless the reader chose otherwise. */
export function Reasoning({ text, live }: { text: string; live: boolean }) {
  const [chosen, choose] = useState<boolean>();
  const wanted = useOpened();
  const open = chosen ?? (wanted || live);
  return (
    <div className="text-[13px]">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => choose(!open)}
        className="flex min-h-7 items-center gap-2 rounded-lg pr-2 text-muted hover:text-ink"
      >
        <ThinkIcon className={live ? "pulse size-4 text-accent" : "size-4"} />
        {live ? t("part.reasoningNow") : t("part.reasoning")}
        <ChevronIcon className={`size-3.5 transition-transform ${open ? "rotate-90" : ""}`} />
      </button>
      {open && (
        <div className="ml-[7px] mt-1 border-l-2 border-line pl-4 text-muted">
          <Prose text={text} />
        </div>
      )}
    </div>
  );
}

export function Sources({ parts }: { parts: SourcePart[] }) {
  return (
    <div>
      <p className="mb-1 text-[11.5px] font-medium text-faint">{t("part.sources")}</p>
      <ul className="flex flex-wrap gap-1.5">
        {parts.map((part, index) => (
          <li key={index} className="max-w-full">
            {part.type === "source-url" ? (
              <Out
                href={part.url}
                className="block max-w-72 truncate rounded-lg border border-line bg-surface px-2.5 py-1 text-[12.5px] hover:border-line-strong hover:bg-hover"
                title={part.url}
              >
                {part.title || part.url}
              </Out>
            ) : (
              <span className="block max-w-72 truncate rounded-lg border border-line bg-surface px-2.5 py-1 text-[12.5px]">{part.title || part.filename}</span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

export function FilePart({ part }: { part: FileUIPart }) {
  const name = part.filename ?? t("part.attachment");
  if (part.mediaType.startsWith("image/") && picture(part.url))
    return <img src={part.url} alt={name} className="max-h-80 max-w-full rounded-xl border border-line object-contain" />;
  const look = "inline-flex max-w-full items-center gap-2 rounded-xl border border-line bg-surface px-3 py-2 text-[13px] hover:bg-hover";
  const inside = (
    <>
      <FileIcon className="size-4 text-faint" />
      <span className="truncate">{name}</span>
      <span className="text-faint">{part.mediaType}</span>
    </>
  );
  if (part.url.startsWith("data:")) // saved, never opened: what is in it is not the page's
    return (
      <a href={part.url} download={name} className={look}>
        {inside}
      </a>
    );
  return (
    <Out href={part.url} className={look}>
      {inside}
    </Out>
  );
}

export function TodoPart({ todos, live }: { todos: Todo[]; live: boolean }) {
  const [chosen, setOpen] = useState<boolean>();
  const wanted = useOpened();
  const open = chosen ?? wanted;
  const done = todos.filter((todo) => todo.state === "done").length;
  const doing = todos.find((todo) => todo.state === "doing");
  return (
    <div className="rounded-xl border border-line bg-surface text-[13px]">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 w-full items-center gap-2 rounded-xl px-3 py-1 text-left hover:bg-hover"
      >
        <ListIcon className="size-4 text-faint" />
        <span className="shrink-0">{t("part.todo", { done, all: todos.length })}</span>
        <span className="min-w-0 flex-1 truncate text-muted">{!open && doing?.content}</span>
        <ChevronIcon className={`size-3.5 text-faint transition-transform ${open ? "rotate-90" : ""}`} />
      </button>
      {open && (
        <ul className="space-y-1.5 border-t border-line px-3 py-2.5">
          {todos.map((todo) => (
            <TodoLine key={todo.id} todo={todo} live={live} />
          ))}
        </ul>
      )}
    </div>
  );
}

export function ErrorPart({ error: said }: { error: RunError }) {
  const shared = useShared();
  const error = translated(said);
  return (
    <Notice tone="bad" title={error.message} action={shared ? undefined : remedyOf(error.code)}>
      {error.hint && <p>{error.hint}</p>}
      <p className="font-mono text-[11.5px]">
        {error.code}
        {error.status ? ` · ${error.status}` : ""}
      </p>
    </Notice>
  );
}
