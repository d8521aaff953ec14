import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type Ref, useId, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { t } from "../i18n";
import { isPicture } from "../state/attached";
import { edit, type Outbox } from "../state/outbox";
import { type Store, useStore } from "../state/store";
import { Button, IconButton } from "../ui/controls";
import { fieldID } from "../ui/focus";
import { ClipIcon, CloseIcon, FileIcon, SendIcon, SteerIcon, StopIcon } from "../ui/icons";
import { say } from "../ui/toast";
import { type Recall, recall } from "./compose/prompts";
import { type Command, commandIn, type Suggestion } from "./compose/slash";
import { optionID, SuggestList } from "./compose/suggest-list";
import { type FileSearch, useSuggest } from "./compose/use-suggest";

const largest = 10 * 1024 * 1024;
const most = 15 * 1024 * 1024; // of all together, as they travel: thole takes 16 MB with the text
const none: Command[] = [];

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
  /** The texts that were sent here before, the newest last. */
  prompts?: () => string[];
  /** Called when the earliest of them is near. */
  onEarlier?: () => void;
  commands?: Command[];
  searchFiles?: FileSearch;
  onSend: () => void;
  onSteer: () => void;
  onStop: () => void;
  ref?: Ref<ComposerHandle>;
}

/** Composer shows what stands in the outbox's field: whatever comes back from there is here again. */
export function Composer(props: Props) {
  const { box, busy, stopping, canSteer, disabled, prompts, onEarlier, commands = none, searchFiles, onSend, onSteer, onStop, ref } = props;
  const { text, files } = useStore(box);
  const setText = (next: string) => box.set((old) => edit(old, { text: next }));
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const ready = !disabled && (text.trim().length > 0 || files.length > 0);

  useImperativeHandle(ref, () => ({
    fill(next) {
      put(text.trim() ? `${text}\n\n${next}` : next);
      area.current?.focus();
    },
    focus: () => area.current?.focus(),
  }));

  const id = useId();
  const [caret, setCaret] = useState(0);
  const suggestions = useSuggest(text, Math.min(caret, text.length), commands, searchFiles);
  const recalled = useRef<Recall>(undefined);
  // A text that is put into the field leaves the caret where the reader goes on.
  const wanted = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (wanted.current === undefined) return;
    area.current?.setSelectionRange(wanted.current, wanted.current);
    setCaret(wanted.current);
    wanted.current = undefined;
  });
  const put = (next: string, at = next.length) => {
    wanted.current = at;
    setText(next);
    setCaret(at);
  };

  const submit = (how: () => void) => {
    const slash = files.length === 0 ? commandIn(text, commands) : undefined;
    if (slash) return act(slash.command, slash.argument);
    if (!ready) return;
    const draft = recalled.current?.draft;
    recalled.current = undefined;
    how();
    if (draft && box.get().text === "") put(draft); // what was being written before an earlier prompt was sent again
  };
  const act = (command: Command, argument: string) => {
    if (command.blocked) return say(`/${command.name}: ${command.blocked}`);
    if (command.argument?.required && !argument) return say(`/${command.name} ${command.argument.name}`);
    recalled.current = undefined;
    put("");
    command.run(argument);
  };
  const pick = (item: Suggestion) => {
    const command = item.run && commandIn(item.insert.trim(), commands);
    if (command && item.run) act(command.command, command.argument);
    else put(text.slice(0, item.from) + item.insert + text.slice(item.to).replace(/^ /, ""), item.from + item.insert.length);
  };

  const earlier = (event: KeyboardEvent<HTMLTextAreaElement>): boolean => {
    const by = event.key === "ArrowUp" ? "back" : event.key === "ArrowDown" ? "forth" : undefined;
    if (!by || !prompts || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
    const { selectionStart: start, selectionEnd: end } = event.currentTarget;
    const list = prompts();
    const next = recall(by, { text, start, end }, list, recalled.current);
    if (!next) return false;
    if (next === "draft") {
      put(recalled.current!.draft);
      recalled.current = undefined;
    } else {
      recalled.current = next;
      put(next.shown);
      if (next.back >= list.length - 1) onEarlier?.();
    }
    return true;
  };
  const suggested = (event: KeyboardEvent): boolean => {
    if (!suggestions || event.ctrlKey || event.altKey || event.metaKey) return false;
    const { items, at, setAt, dismiss } = suggestions;
    if (event.key === "ArrowDown") setAt((at + 1) % items.length);
    else if (event.key === "ArrowUp") setAt((at + items.length - 1) % items.length);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) pick(items[at]!);
    else if (event.key === "Escape") dismiss();
    else return false;
    return true;
  };
  const keys = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // An input method uses Enter and the arrows for itself while a word is being composed.
    if (event.nativeEvent.isComposing) return;
    if (suggested(event) || earlier(event)) return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    submit((event.ctrlKey || event.metaKey) && busy && canSteer ? onSteer : onSend);
  };

  const add = (list: Iterable<File>) => {
    let sum = box.get().files.reduce((all, file) => all + file.url.length, 0);
    for (const file of list) {
      sum += Math.ceil((file.size * 4) / 3); // as it travels
      const why = file.size > largest ? "composer.tooLarge" : sum > most ? "composer.tooMuch" : undefined;
      if (why) {
        sum -= Math.ceil((file.size * 4) / 3);
        say(t(why, { name: file.name }));
        continue;
      }
      const reader = new FileReader();
      reader.onload = () => {
        const part = { type: "file" as const, mediaType: file.type || "application/octet-stream", filename: file.name, url: String(reader.result) };
        box.set((old) => edit(old, { files: [...old.files, part] }));
      };
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
      className="relative rounded-2xl border border-line-strong bg-surface shadow-[0_1px_3px_rgb(0_0_0/0.05)] focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        submit(onSend);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      {suggestions && <SuggestList id={id} suggestions={suggestions} onPick={pick} />}
      {files.length > 0 && (
        <ul className="flex flex-wrap gap-2 px-3 pt-3">
          {files.map((file, index) => (
            <li key={index} className="relative">
              {isPicture(file) ? (
                <img src={file.url} alt={file.filename ?? ""} className="size-16 rounded-lg border border-line object-cover" />
              ) : (
                <span className="flex h-16 max-w-48 items-center gap-2 rounded-lg border border-line bg-raised px-3 text-[12.5px]">
                  <FileIcon className="size-4 text-faint" />
                  <span className="truncate">{file.filename}</span>
                </span>
              )}
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
        id={fieldID}
        rows={1}
        aria-label={t("composer.label")}
        placeholder={busy ? t("composer.placeholderBusy") : t("composer.placeholder")}
        title={t("composer.hint")}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={suggestions ? id : undefined}
        aria-activedescendant={suggestions ? optionID(id, suggestions.at) : undefined}
        value={text}
        disabled={disabled}
        onChange={(event) => {
          setText(event.target.value);
          setCaret(event.target.selectionStart);
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onBlur={() => suggestions?.dismiss()}
        onKeyDown={keys}
        onPaste={paste}
        className="field-sizing-content block max-h-[40dvh] min-h-11 w-full resize-none bg-transparent px-4 pb-1 pt-3 text-[15px] leading-[1.5]
          outline-none placeholder:text-faint md:text-[14px]"
      />
      <div className="flex items-center gap-1.5 px-2 pb-2">
        <input
          ref={picker}
          type="file"
          multiple
          className="hidden"
          tabIndex={-1}
          aria-hidden="true"
          onChange={(event) => {
            if (event.target.files) add([...event.target.files]);
            event.target.value = ""; // the same file may be chosen again
          }}
        />
        <IconButton label={t("composer.attach")} onClick={() => picker.current?.click()}>
          <ClipIcon />
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
