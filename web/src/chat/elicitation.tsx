import { type FormEvent, useId, useRef, useState } from "react";
import type { Question, Reply } from "../api/types";
import "../i18n/later";
import { t, type Key } from "../i18n";
import { Button } from "../ui/controls";
import { line, plain } from "../ui/plain";
import { type Fault, type Field, fieldsOf, type Given, read } from "./schema";

interface Props {
  question: Question;
  sending: boolean;
  onReply: (reply: Reply) => void;
}

const box = "w-full rounded-lg border border-line bg-ground px-2.5 py-1.5 text-[13px] placeholder:text-faint aria-invalid:border-bad";

/** Elicitation answers a tool's server: field by field where the form is one that MCP names, else as JSON. */
export default function Elicitation(props: Props) {
  const [fields] = useState(() => fieldsOf(props.question.schema));
  return fields ? <Form {...props} fields={fields} /> : <AsJSON {...props} />;
}

function Form({ fields, sending, onReply }: Props & { fields: Field[] }) {
  const [given, setGiven] = useState<Record<string, Given>>(() => Object.fromEntries(fields.map((it) => [it.name, it.initial])));
  const [tried, setTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const results = fields.map((field) => ({ field, ...read(field, given[field.name]!) }));

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wrong = results.findIndex((it) => it.fault);
    setTried(true);
    if (wrong >= 0) return form.current?.querySelectorAll("[data-field]")[wrong]?.querySelector<HTMLElement>("input, select")?.focus();
    const filled = results.filter((it) => it.value !== undefined);
    onReply({ decision: "allow", result: Object.fromEntries(filled.map(({ field, value }) => [field.name, value])) });
  };

  return (
    <form ref={form} noValidate onSubmit={submit} className="space-y-3">
      {results.map(({ field, fault }) => (
        <OneField
          key={field.name}
          field={field}
          given={given[field.name]!}
          fault={tried ? fault : undefined}
          onChange={(value) => setGiven({ ...given, [field.name]: value })}
        />
      ))}
      <Ways sending={sending} onReply={onReply} />
    </form>
  );
}

interface FieldProps {
  field: Field;
  given: Given;
  fault?: Fault;
  onChange: (given: Given) => void;
}

function OneField({ field, given, fault, onChange }: FieldProps) {
  const id = useId();
  const notes = [field.description && `${id}-about`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  const common = { id, "aria-describedby": notes, "aria-invalid": fault ? true : undefined };
  const title = (
    <>
      {line(field.title)}
      {!field.required && field.kind !== "boolean" && <span className="ml-2 text-[11.5px] font-normal text-faint">{t("form.optional")}</span>}
    </>
  );
  return (
    <div data-field className="text-[13px]">
      {field.kind === "boolean" ? (
        <label className="flex items-start gap-2.5">
          <input {...common} type="checkbox" className={check} checked={given === true} onChange={(event) => onChange(event.target.checked)} />
          <span className="min-w-0 font-medium wrap-anywhere">{title}</span>
        </label>
      ) : field.kind === "many" ? (
        <Several field={field} given={given as string[]} notes={notes} title={title} onChange={onChange} />
      ) : (
        <label htmlFor={id} className="block font-medium wrap-anywhere">
          {title}
        </label>
      )}
      {field.description && (
        <p id={`${id}-about`} className="text-muted wrap-anywhere">
          {plain(field.description)}
        </p>
      )}
      {field.kind === "one" ? (
        <select {...common} aria-required={field.required} className={`${box} mt-1`} value={given as string} onChange={(event) => onChange(event.target.value)}>
          <option value="" />
          {field.choices.map((it) => (
            <option key={it.value} value={it.value}>
              {line(it.title)}
            </option>
          ))}
        </select>
      ) : (
        field.kind !== "boolean" &&
        field.kind !== "many" && (
          <input
            {...common}
            {...kinds[field.kind === "text" ? (field.format ?? "") : field.kind]}
            aria-required={field.required}
            className={`${box} mt-1`}
            value={given as string}
            onChange={(event) => onChange(event.target.value)}
          />
        )
      )}
      {fault && (
        <p id={`${id}-fault`} role="alert" className="mt-0.5 text-bad">
          {t(`form.bad.${fault.key}` as Key, { n: fault.n ?? 0 })}
        </p>
      )}
    </div>
  );
}

const shown = "max-h-48 overflow-auto rounded-lg border border-line bg-code px-2.5 py-2 font-mono text-[12px]";
const check = "mt-1 accent-[var(--accent)]";

/** What a browser offers for a field; what may stand there is checked by us, in the page's language. */
const kinds: Record<string, React.ComponentProps<"input">> = {
  number: { inputMode: "decimal", autoComplete: "off" },
  integer: { inputMode: "numeric", autoComplete: "off" },
  email: { type: "email" },
  uri: { type: "url" },
  date: { type: "date" },
  "date-time": { type: "datetime-local", step: 1 },
};

interface SeveralProps {
  field: Field;
  given: string[];
  notes?: string;
  title: React.ReactNode;
  onChange: (given: string[]) => void;
}

function Several({ field, given, notes, title, onChange }: SeveralProps) {
  // In the order of the choices, whatever was clicked first.
  const pick = (value: string, on: boolean) => onChange(field.choices.map((it) => it.value).filter((it) => (it === value ? on : given.includes(it))));
  return (
    <fieldset aria-describedby={notes} className="min-w-0">
      <legend className="mb-1 font-medium wrap-anywhere">
        {title}
        <span className="ml-2 text-[11.5px] font-normal text-faint">{t("ask.chooseMany")}</span>
      </legend>
      <div className="space-y-1">
        {field.choices.map((it) => (
          <label key={it.value} className="flex items-start gap-2.5">
            <input type="checkbox" className={check} checked={given.includes(it.value)} onChange={(event) => pick(it.value, event.target.checked)} />
            <span className="min-w-0 wrap-anywhere">{line(it.title)}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function AsJSON({ question, sending, onReply }: Props) {
  const id = useId();
  const [json, setJSON] = useState("{}");
  const [bad, setBad] = useState(false);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    let result: unknown;
    try {
      result = JSON.parse(json);
    } catch {
      // No object, so the form says so.
    }
    const fits = typeof result === "object" && result !== null && !Array.isArray(result);
    setBad(!fits);
    if (fits) onReply({ decision: "allow", result });
  };

  return (
    <form onSubmit={submit} className="space-y-3">
      <pre className={shown} tabIndex={0} aria-label={t("form.schema")}>
        {plain(JSON.stringify(question.schema, null, 2))}
      </pre>
      <label className="block text-[13px]">
        {t("form.json")}
        <textarea
          className={`${box} mt-1 font-mono`}
          rows={4}
          value={json}
          aria-invalid={bad || undefined}
          aria-describedby={bad ? id : undefined}
          onChange={(event) => setJSON(event.target.value)}
        />
      </label>
      {bad && (
        <p id={id} role="alert" className="text-[13px] text-bad">
          {t("form.badJSON")}
        </p>
      )}
      <Ways sending={sending} onReply={onReply} />
    </form>
  );
}

function Ways({ sending, onReply }: Omit<Props, "question">) {
  return (
    <div className="flex flex-wrap gap-2">
      <Button type="submit" look="primary" disabled={sending}>
        {t("ask.answer")}
      </Button>
      <Button look="danger" disabled={sending} onClick={() => onReply({ decision: "deny" })}>
        {t("ask.deny")}
      </Button>
    </div>
  );
}
