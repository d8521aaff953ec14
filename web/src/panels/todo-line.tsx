import type { Todo, TodoState } from "../api/types";
import { t, type Key } from "../i18n";
import { CheckIcon, CloseIcon, Spinner } from "../ui/icons";

const marks = {
  todo: <span className="size-3.5 rounded-full border-[1.6px] border-line-strong" />,
  doing: <Spinner className="size-3.5 text-accent" />,
  done: <CheckIcon className="size-3.5 text-ok" />,
  canceled: <CloseIcon className="size-3.5 text-faint" />,
} satisfies Record<TodoState, unknown>;

export function TodoLine({ todo }: { todo: Todo }) {
  return (
    <li className="flex items-start gap-2 text-[13px]">
      <span className="mt-[3px] shrink-0">
        {marks[todo.state]}
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
