import { type ReactNode, useEffect, useRef } from "react";
import { t } from "../i18n";
import { IconButton } from "./controls";
import { toField, useBack } from "./focus";
import { CloseIcon } from "./icons";

interface Props {
  open: boolean;
  label: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/** Modal is the native dialog: focus stays inside, Escape closes, and focus returns to where it was or to the field. */
export function Modal({ open, label, onClose, children, className = "" }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const opener = useRef<{ at: Element | null; byKey: boolean }>(undefined);
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog) return;
    if (open && !dialog.open) {
      const at = document.activeElement;
      opener.current = { at, byKey: at?.matches(":focus-visible") ?? false };
      dialog.showModal();
    }
    if (!open && dialog.open) dialog.close();
  }, [open]);
  // The browser goes back to what opened it, which is right for who works by keys. Others go on writing.
  const closed = () => {
    const { at, byKey } = opener.current ?? {};
    const taken = () => document.activeElement !== document.body && document.activeElement !== at; // by what the dialog led to
    if (!byKey || !at?.isConnected || at === document.body) setTimeout(() => taken() || toField());
    onClose();
  };
  return (
    <dialog
      ref={ref}
      aria-label={label}
      onClose={closed}
      onClick={(event) => event.target === ref.current && onClose()}
      className={`bg-surface text-ink ${className}`}
    >
      {open && children}
    </dialog>
  );
}

export function Confirm(props: Props) {
  return (
    <Modal {...props} className={`m-auto ${props.className ?? "w-[min(26rem,calc(100vw-2rem))]"} rounded-2xl border border-line p-5 shadow-pop`}>
      {props.children}
    </Modal>
  );
}

/** Drawer covers one side of a small screen, or the whole of it. */
export function Drawer({ side, whole = false, ...props }: Props & { side: "left" | "right"; whole?: boolean }) {
  useBack(props.open, props.onClose);
  const width = whole ? "w-screen max-w-none" : "w-[min(22rem,88vw)]";
  return (
    <Modal {...props} className={`m-0 h-dvh max-h-none ${width} border-line shadow-pop ${side === "left" ? "mr-auto border-r" : "ml-auto border-l"}`}>
      <div className="flex h-full flex-col">
        <div className="flex items-center justify-between border-b border-line px-3 py-2">
          <span className="text-[13px] font-semibold">{props.label}</span>
          <IconButton label={t("common.close")} onClick={props.onClose}>
            <CloseIcon />
          </IconButton>
        </div>
        <div className="min-h-0 flex-1">{props.children}</div>
      </div>
    </Modal>
  );
}
