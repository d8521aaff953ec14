import { useState } from "react";
import { post, type Problem, request } from "../api/http";
import type { Share, Shares } from "../api/types";
import { t } from "../i18n";
import "../i18n/later";
import { Failed, Section, useLoad } from "../pages/page";
import { login } from "../state/account";
import { useStore } from "../state/store";
import { Button, Choice, CommandLine, IconButton, Notice } from "../ui/controls";
import { CloseIcon } from "../ui/icons";
import { ago, moment } from "../ui/time";

const hour = 3600;
const day = 24 * hour;
const lives = [hour, day, 7 * day, 30 * day];
const lifeText = (life: number): string => (life === hour ? t("share.hour") : t(life === day ? "tokens.day" : "usage.days", { n: life / day }));

/** Links makes, lists and revokes the links with which others read a chat. */
export default function Links({ session, onClose }: { session: string; onClose: () => void }) {
  const mayChange = useStore(login, (it) => it.state === "in" && it.account.scope === "admin");
  const { value, problem, reload } = useLoad<Shares>(`/sessions/${session}/shares`);
  return (
    <>
      <div className="flex items-start justify-between gap-2">
        <h2 className="text-[15px] font-semibold">{t("share.title")}</h2>
        <IconButton label={t("common.close")} className="-mr-1 -mt-1" onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </div>
      <p className="mb-4 mt-1 text-[13px] text-muted">{t("share.about")}</p>
      <div className="mb-5">{mayChange ? <Make session={session} onMade={reload} /> : <Notice>{t("share.needsAdmin")}</Notice>}</div>
      <Section title={t("share.links")}>
        {problem && <Failed problem={problem} reload={reload} />}
        {value?.items.length === 0 && <p className="text-[13px] text-muted">{t("share.none")}</p>}
        {value && value.items.length > 0 && (
          <ul className="divide-y divide-line rounded-xl border border-line">
            {value.items.map((it) => (
              <Link key={it.id} share={it} mayRevoke={mayChange} onChange={reload} />
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}

function Make({ session, onMade }: { session: string; onMade: () => void }) {
  const [life, setLife] = useState(String(7 * day));
  const [link, setLink] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const make = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      const { path } = await post<Share>(`/sessions/${session}/shares`, { expires_in: Number(life) });
      setLink(new URL(path!, location.origin).href);
    } catch (error) {
      setProblem(error as Problem);
    }
    setBusy(false);
    onMade(); // also when nobody answered: a link may have been made
  };
  if (link)
    return (
      <div className="space-y-2" role="status">
        <Notice tone="ok" title={t("share.made")}>
          {t("share.once")}
        </Notice>
        <CommandLine text={link} />
        <Button onClick={() => setLink(undefined)}>{t("share.another")}</Button>
      </div>
    );
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-2 text-[13px]">
        <span aria-hidden>{t("share.life")}</span>
        <Choice label={t("share.life")} value={life} onChange={setLife} options={lives.map((it) => ({ value: String(it), text: lifeText(it) }))} />
        <Button look="primary" disabled={busy} onClick={() => void make()}>
          {t("share.make")}
        </Button>
      </div>
      {problem && <Refused problem={problem} />}
    </div>
  );
}

function Refused({ problem }: { problem: Problem }) {
  return (
    <Notice tone="bad" title={problem.message}>
      {problem.code === "forbidden" ? t("share.needsAdmin") : problem.hint}
    </Notice>
  );
}

function Link({ share, mayRevoke, onChange }: { share: Share; mayRevoke: boolean; onChange: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const created = moment(share.created_at);
  const revoke = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      await request("DELETE", `/shares/${share.id}`);
    } catch (error) {
      if ((error as Problem).status !== 404) setProblem(error as Problem); // it is gone already
    }
    setBusy(false);
    onChange();
  };
  return (
    <li className="space-y-2 px-3.5 py-2.5 text-[13px]">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-52">
          <p>{t("settings.until", { time: moment(share.expires_at) })}</p>
          <p className="text-[12px] text-muted">
            {t("share.created", { time: created })}
            {" · "}
            {share.last_used_at ? t("connections.used", { time: ago(share.last_used_at) }) : t("connections.unused")}
          </p>
        </div>
        {mayRevoke && (
          <Button look="danger" disabled={busy} aria-label={t("share.revokeNamed", { time: created })} onClick={() => void revoke()}>
            {t("connections.revoke")}
          </Button>
        )}
      </div>
      {problem && <Refused problem={problem} />}
    </li>
  );
}
