import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type Ref, useImperativeHandle, useRef } from "react";
import { t } from "../i18n";
import { edit, type Outbox } from "../state/outbox";
import { type Store, useStore } from "../state/store";
import { Button, IconButton } from "../ui/controls";
import { CloseIcon, ImageIcon, SendIcon, SteerIcon, StopIcon } from "../ui/icons";
import { say } from "../ui/toast";

const largest = 10 * 1024 * 1024;

export interface ComposerHandle {
  fill(text: string): void;
  focus(): void;
}

interface Props {
  box: Store<Outbox>;
  busy: boolean;
  stopping: boolean;
  canSteer: boolean;
  disabled?: boolean;
  onSend: () => void;
  onSteer: () => void;
  onStop: () => void;
  ref?: Ref<ComposerHandle>;
}

/** Composer shows what stands in the outbox's field: whatever comes back from there is here again. */
export function Composer({ box, busy, stopping, canSteer, disabled, onSend, onSteer, onStop, ref }: Props) {
  const { text, files } = useStore(box);
  const setText = (next: string) => box.set((old) => edit(old, { text: next }));
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const ready = !disabled && (text.trim().length > 0 || files.length > 0);

  useImperativeHandle(ref, () => ({
    fill(next) {
      setText(text.trim() ? `${text}\n\n${next}` : next);
      area.current?.focus();
    },
    focus: () => area.current?.focus(),
  }));

  const submit = (how: () => void) => ready && how();

  const keys = (event: KeyboardEvent) => {
    // An input method uses Enter for itself while a word is being composed.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit((event.ctrlKey || event.metaKey) && busy && canSteer ? onSteer : onSend);
  };

  const add = (list: Iterable<File>) => {
    for (const file of list) {
      if (!file.type.startsWith("image/") || file.size > largest) {
        say(t("composer.onlyImages"));
        continue;
      }
      const reader = new FileReader();
      reader.onload = () =>
        box.set((old) => edit(old, { files: [...old.files, { type: "file", mediaType: file.type, filename: file.name, url: String(reader.result) }] }));
      reader.onerror = () => say(t("composer.unreadable", { name: file.name }));
      reader.readAsDataURL(file);
    }
  };
  const paste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    add(event.dataTransfer.files);
  };

  return (
    <form
      className="rounded-2xl border border-line-strong bg-surface shadow-[0_1px_3px_rgb(0_0_0/0.05)] focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        submit(onSend);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      {files.length > 0 && (
        <ul className="flex flex-wrap gap-2 px-3 pt-3">
          {files.map((file, index) => (
            <li key={index} className="relative">
              <img src={file.url} alt={file.filename ?? ""} className="size-16 rounded-lg border border-line object-cover" />
              <IconButton
                label={t("composer.remove", { name: file.filename ?? "" })}
                className="absolute -right-2 -top-2 size-6 border border-line bg-surface"
                onClick={() => box.set((old) => edit(old, { files: old.files.filter((_, at) => at !== index) }))}
              >
                <CloseIcon className="size-3" />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={area}
        rows={1}
        aria-label={t("composer.label")}
        placeholder={busy ? t("composer.placeholderBusy") : t("composer.placeholder")}
        title={t("composer.hint")}
        value={text}
        disabled={disabled}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={keys}
        onPaste={paste}
        className="field-sizing-content block max-h-[40dvh] min-h-11 w-full resize-none bg-transparent px-4 pb-1 pt-3 text-[15px] leading-[1.5]
          outline-none placeholder:text-faint md:text-[14px]"
      />
      <div className="flex items-center gap-1.5 px-2 pb-2">
        <input
          ref={picker}
          type="file"
          accept="image/*"
          multiple
          className="hidden"
          tabIndex={-1}
          aria-hidden="true"
          onChange={(event) => {
            if (event.target.files) add([...event.target.files]);
            event.target.value = ""; // the same picture may be chosen again
          }}
        />
        <IconButton label={t("composer.attach")} onClick={() => picker.current?.click()}>
          <ImageIcon />
        </IconButton>
        <span className="flex-1" />
        {busy && ready && (
          <>
            {canSteer && (
              <Button look="plain" title={t("composer.steerHint")} onClick={() => submit(onSteer)}>
                <SteerIcon className="size-3.5" />
                {t("composer.steer")}
              </Button>
            )}
            <Button type="submit" look="plain">
              {t("composer.queue")}
            </Button>
          </>
        )}
        {busy ? (
          <button
            type="button"
            onClick={onStop}
            disabled={stopping}
            aria-label={stopping ? t("composer.stopping") : t("composer.stop")}
            title={stopping ? t("composer.stopping") : t("composer.stop")}
            className="inline-flex size-9 items-center justify-center rounded-xl bg-ink text-ground hover:opacity-85 disabled:opacity-50"
          >
            <StopIcon />
          </button>
        ) : (
          <button
            type="submit"
            disabled={!ready}
            aria-label={t("composer.send")}
            title={t("composer.send")}
            className="inline-flex size-9 items-center justify-center rounded-xl bg-accent text-accent-ink hover:brightness-110 disabled:bg-raised
              disabled:text-faint"
          >
            <SendIcon />
          </button>
        )}
      </div>
    </form>
  );
}
