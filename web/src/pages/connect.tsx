import { type FormEvent, useId, useState } from "react";
import { type Problem, request, uuid } from "../api/http";
import type { SecretItem } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { codeOf, ConfirmCode, field } from "../settings/confirm-code";
import { Button } from "../ui/controls";

const forms = ["key", "file"] as const;

/**
 * Connect gives an agent a login of the user's own: an API key, or the file that the agent's own login left on the user's
 * machine. A login that is not fresh has to be proven again, by the code of a new link.
 */
export function Connect({ agent, title, item, onDone }: { agent: string; title: string; item?: SecretItem; onDone: () => void }) {
  const [form, setForm] = useState<(typeof forms)[number]>("key");
  const [value, setValue] = useState("");
  const [code, setCode] = useState("");
  const [key] = useState(uuid);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const id = useId();

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    const proof = codeOf(code);
    try {
      if (item) await request("PUT", `/vault/items/${item.id}/value`, { etag: `"${item.etag}"`, body: { value, ...proof }, strange: true });
      else await request("POST", "/vault/items", { key, body: { name: agent, kind: "provider_auth", provider: agent, value, ...proof }, strange: true });
      setValue("");
      onDone();
    } catch (error) {
      setProblem(error as Problem);
    } finally {
      setBusy(false);
    }
  };

  return (
    <form aria-label={t("connect.title", { name: title })} onSubmit={(event) => void submit(event)} className="mt-3 space-y-3 rounded-xl bg-raised p-3">
      <fieldset className="flex flex-wrap gap-x-4 gap-y-1 text-[13px]">
        <legend className="sr-only">{t("connect.form")}</legend>
        {forms.map((it) => (
          <label key={it} className="flex items-center gap-1.5">
            <input
              type="radio"
              name={`${id}-form`}
              checked={form === it}
              onChange={() => {
                setForm(it);
                setValue("");
              }}
            />
            {t(`connect.${it}`)}
          </label>
        ))}
      </fieldset>
      {form === "key" ? (
        <label className="block text-[12.5px] text-muted">
          {t("connect.keyLabel")}
          <input
            type="password"
            autoComplete="off"
            spellCheck={false}
            required
            value={value}
            onChange={(event) => setValue(event.target.value.trim())}
            className={`${field} font-mono`}
          />
        </label>
      ) : (
        <label className="block text-[12.5px] text-muted">
          {t("connect.fileLabel")}
          <input key={form} type="file" required className={field} onChange={(event) => void event.target.files?.[0]?.text().then(setValue)} />
        </label>
      )}
      <ConfirmCode problem={problem} code={code} onChange={setCode} />
      <div className="flex items-center justify-between gap-2">
        <p className="text-[12px] text-muted">{t("connect.safe")}</p>
        <Button type="submit" look="primary" disabled={busy || !value}>
          {t("connect.save")}
        </Button>
      </div>
    </form>
  );
}
