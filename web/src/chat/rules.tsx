import type { Rule } from "../api/types";
import { type Key, t } from "../i18n";
import { line } from "../ui/plain";

/** spoken says a rule in the page's language. One of a newer server has no words here: the server's own stand for it. */
export function spoken(rule: Rule, english: string | undefined): string {
  const { kind, subject = "", server = "", target = "" } = rule;
  const key: Key = `rule.${kind}`;
  if (kind === "other" && subject) return line(subject);
  // A key that the page does not know has no text at run time.
  const text = (t(key) as string | undefined) && t(key, { subject, server, target });
  return line(text ?? english ?? subject);
}

/** Rules are rights, each in words. */
export function Rules({ label, rules, english }: { label: string; rules: Rule[] | undefined; english: string[] }) {
  const words = rules?.length === english.length ? rules.map((rule, at) => spoken(rule, english[at])) : english.map(line);
  return (
    <p className="text-[13px] text-muted">
      {label}{" "}
      {words.map((word) => (
        <span key={word} className="mr-1 rounded bg-code px-1.5 py-0.5 text-[12.5px] text-ink wrap-anywhere">
          {word}
        </span>
      ))}
    </p>
  );
}
