import type { Todo, TodoState } from "../api/types";
import { t, type Key } from "../i18n";
import { CheckIcon, CloseIcon, Spinner } from "../ui/icons";

const marks = {
  todo: <span className="block size-3.5 rounded-full border-[1.6px] border-line-strong" />,
  // Begun, and nobody is at it: half of the circle.
  doing: <span className="block size-3.5 rounded-full border-[1.6px] border-accent bg-linear-to-r from-accent from-50% to-transparent to-50%" />,
  done: <CheckIcon className="size-3.5 text-ok" />,
  canceled: <CloseIcon className="size-3.5 text-faint" />,
} satisfies Record<TodoState, unknown>;

/** TodoLine is one entry; live: an agent is at work on the list, so that something moves. */
export function TodoLine({ todo, live }: { todo: Todo; live: boolean }) {
  return (
    <li className="flex items-start gap-2 text-[13px]">
      <span className="mt-[3px] shrink-0">
        {todo.state === "doing" && live ? <Spinner className="size-3.5 text-accent" /> : (marks[todo.state] ?? marks.todo)}
        <span className="sr-only">{t(`todo.${todo.state}` as Key)}</span>
      </span>
      <span
        className={`min-w-0 wrap-anywhere
          ${todo.state === "done" || todo.state === "canceled" ? "text-muted line-through decoration-line-strong" : ""}
          ${todo.state === "doing" ? "font-medium" : ""}`}
      >
        {todo.content}
      </span>
    </li>
  );
}
