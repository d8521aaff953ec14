import { type ButtonHTMLAttributes, type ReactNode, useState } from "react";
import { t } from "../i18n";
import { CheckIcon, CopyIcon } from "./icons";

const looks = {
  primary: "bg-accent text-accent-ink hover:brightness-110 border-transparent",
  plain: "bg-surface text-ink border-line-strong hover:bg-hover",
  quiet: "bg-transparent text-muted border-transparent hover:bg-hover hover:text-ink",
  danger: "bg-surface text-bad border-line-strong hover:bg-bad-soft",
} as const;

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: keyof typeof looks;
}

export function Button({ look = "plain", className = "", type = "button", ...rest }: ButtonProps) {
  return (
    <button
      type={type}
      className={`inline-flex min-h-8 items-center justify-center gap-1.5 rounded-lg border px-3 py-1 text-[13px] font-medium transition-colors
        disabled:opacity-50 ${looks[look]} ${className}`}
      {...rest}
    />
  );
}

/** iconLook is the look of a control that is an icon alone. */
export const iconLook = `inline-flex size-8 shrink-0 items-center justify-center rounded-lg text-muted transition-colors hover:bg-hover hover:text-ink
        disabled:opacity-40 disabled:hover:bg-transparent`;

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  label: string;
  children: ReactNode;
}

export function IconButton({ label, className = "", type = "button", ...rest }: IconButtonProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={`${iconLook} ${className}`}
      {...rest}
    />
  );
}

export function CopyButton({ text, label = t("common.copy"), className = "" }: { text: string; label?: string; className?: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <IconButton
      label={copied ? t("common.copied") : label}
      className={`size-7 ${className}`}
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(() => {
          setCopied(true);
          setTimeout(() => setCopied(false), 1500);
        });
      }}
    >
      {copied ? <CheckIcon className="size-3.5" /> : <CopyIcon className="size-3.5" />}
    </IconButton>
  );
}

const tones = {
  neutral: "bg-raised text-muted",
  accent: "bg-accent-soft text-accent",
  ok: "bg-ok-soft text-ok",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
} as const;
export type Tone = keyof typeof tones;

export function Badge({ tone = "neutral", children, className = "" }: { tone?: Tone; children: ReactNode; className?: string }) {
  return (
    <span className={`inline-flex shrink-0 items-center gap-1 whitespace-nowrap rounded-md px-1.5 py-px text-[11.5px] font-medium ${tones[tone]} ${className}`}>
      {children}
    </span>
  );
}

/** Choice is a native select: it works with every keyboard, screen reader and phone. */
export function Choice(props: {
  label: string;
  value: string;
  options: { value: string; text: string; disabled?: boolean }[];
  onChange: (value: string) => void;
  className?: string;
}) {
  return (
    <select
      aria-label={props.label}
      title={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.target.value)}
      className={`h-8 min-w-0 rounded-lg border border-line bg-surface px-2 text-[13px] text-ink hover:border-line-strong ${props.className ?? ""}`}
    >
      {props.options.map((option) => (
        <option key={option.value} value={option.value} disabled={option.disabled}>
          {option.text}
        </option>
      ))}
    </select>
  );
}

/** CommandLine shows something to type in a terminal. */
export function CommandLine({ text }: { text: string }) {
  return (
    <div className="flex items-center gap-1 rounded-lg border border-line bg-code pl-3">
      <code className="min-w-0 flex-1 overflow-x-auto whitespace-nowrap py-1.5 font-mono text-[12.5px]" tabIndex={0}>
        {text}
      </code>
      <CopyButton text={text} />
    </div>
  );
}

export function Notice({ tone = "neutral", title, children, action }: { tone?: Tone; title?: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={`rounded-xl px-3.5 py-2.5 text-[13px] ${tones[tone]}`} role={tone === "bad" ? "alert" : undefined}>
      {title && <p className="font-semibold">{title}</p>}
      {children && <div className="wrap-anywhere">{children}</div>}
      {action && <div className="mt-2 flex flex-wrap gap-2">{action}</div>}
    </div>
  );
}
