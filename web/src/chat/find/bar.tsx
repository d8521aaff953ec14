import { type KeyboardEvent, useEffect, useRef } from "react";
import { t } from "../../i18n";
import { useStore } from "../../state/store";
import { IconButton } from "../../ui/controls";
import { CloseIcon, DownIcon, SearchIcon, Spinner, UpIcon } from "../../ui/icons";
import { find, finding } from "./state";

interface Props {
  count: number;
  /** Which hit is meant, from one; nought: none. */
  at: number;
  /** Earlier messages are still being read. */
  more: boolean;
  onStep: (by: 1 | -1) => void;
  onClose: () => void;
}

/** FindBar is the field of the search inside a chat. Enter goes on, Shift+Enter goes back, Escape closes. */
export function FindBar({ count, at, more, onStep, onClose }: Props) {
  const text = useStore(finding, (it) => it.text);
  const asked = useStore(finding, (it) => it.asked);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, [asked]);
  const keys = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const step = event.key === "Enter" ? (event.shiftKey ? -1 : 1) : event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : undefined;
    if (step) onStep(step);
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const state = !text.trim() ? "" : count === 0 ? (more ? t("find.reading") : t("history.none")) : t("find.count", { at, n: count });
  return (
    <search
      aria-label={t("find.label")}
      onKeyDown={keys}
      className="absolute right-2 top-2 z-10 flex max-w-[calc(100%-1rem)] items-center gap-0.5 rounded-xl border border-line-strong bg-surface py-1 pl-2.5
        pr-1 shadow-pop md:right-4"
    >
      <SearchIcon className="size-3.5 text-faint" />
      <input
        ref={field}
        type="text"
        aria-label={t("find.label")}
        placeholder={t("find.label")}
        value={text}
        onChange={(event) => find.type(event.target.value)}
        className="h-7 w-44 min-w-0 bg-transparent px-1.5 text-[13px] outline-none placeholder:text-faint"
      />
      <span role="status" className="flex shrink-0 items-center gap-1 px-1 text-[11.5px] tabular-nums text-faint">
        {state}
        {more && text.trim() !== "" && <Spinner className="size-3" />}
      </span>
      <IconButton label={t("find.previous")} className="size-7" disabled={count === 0} onClick={() => onStep(-1)}>
        <UpIcon className="size-3.5" />
      </IconButton>
      <IconButton label={t("find.next")} className="size-7" disabled={count === 0} onClick={() => onStep(1)}>
        <DownIcon className="size-3.5" />
      </IconButton>
      <IconButton label={t("find.close")} className="size-7" onClick={onClose}>
        <CloseIcon className="size-3.5" />
      </IconButton>
    </search>
  );
}
