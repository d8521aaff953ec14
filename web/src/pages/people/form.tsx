import { type FormEvent, type ReactNode, useState } from "react";
import type { Problem } from "../../api/http";
import { Button, Notice } from "../../ui/controls";

export const field = "mt-1 block w-full min-w-0 rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] text-ink hover:border-line-strong";
export const list = "divide-y divide-line rounded-xl border border-line bg-surface";
export const row = "flex flex-wrap items-center gap-x-3 gap-y-1.5 px-3.5 py-2.5 text-[13px]";

interface Props {
  label: string;
  ready: boolean;
  /** What it says about; it is done once this resolves. */
  onSend: () => Promise<unknown>;
  children: ReactNode;
}

/** Form sends what stands in it once, and keeps it with the reason when it is refused. */
export function Form({ label, ready, onSend, children }: Props) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    setProblem(undefined);
    await onSend().catch((error: unknown) => setProblem(error as Problem));
    setBusy(false);
  };
  return (
    <form aria-label={label} onSubmit={(event) => void submit(event)} className="mt-2 space-y-3 rounded-xl border border-line bg-surface p-4">
      <div className="flex flex-wrap items-end gap-3">
        {children}
        <Button type="submit" look="primary" disabled={busy || !ready}>
          {label}
        </Button>
      </div>
      {problem && (
        <Notice tone="bad" title={problem.message}>
          {problem.hint}
        </Notice>
      )}
    </form>
  );
}

/** Field is a line of text with its name above it. */
export function Field({ label, value, type = "text", onChange }: { label: string; value: string; type?: string; onChange: (value: string) => void }) {
  return (
    <label className="block min-w-0 flex-1 basis-40 text-[12.5px] text-muted">
      {label}
      <input
        type={type}
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className={field}
      />
    </label>
  );
}

/** Pick is a choice with its name above it. */
export function Pick(props: { label: string; value: string; options: { value: string; text: string }[]; onChange: (value: string) => void }) {
  return (
    <label className="block min-w-0 text-[12.5px] text-muted">
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.target.value)} className={`${field} max-w-64`}>
        {props.options.map((it) => (
          <option key={it.value} value={it.value}>
            {it.text}
          </option>
        ))}
      </select>
    </label>
  );
}
