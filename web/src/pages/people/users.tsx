import { useState } from "react";
import { maybe, t } from "../../i18n";
import "../../i18n/later";
import { Badge, Button, CommandLine, Notice } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { moment } from "../../ui/time";
import { succeeded, tried } from "../../ui/toast";
import { Section } from "../page";
import { call, type Everybody, type User } from "./calls";
import { Field, Form, list, Pick, row } from "./form";

/** Users are listed, invited, and shut out. A link is shown once: the server keeps only its sum. */
export function Users({ all, onChange }: { all: Everybody; onChange: () => void }) {
  const [link, setLink] = useState<User>();
  const made = (user: User | undefined) => {
    if (!user) return;
    if (user.url) setLink(user);
    onChange();
  };
  const people = all.users.filter((it) => it.kind !== "system"); // the program's own user is nobody's to change
  return (
    <Section title={t("people.users")}>
      <div role="status">
        {link && (
          <div className="mb-3 space-y-2">
            <Notice tone="ok" title={t("people.link", { login: link.login })}>
              {t("people.linkAbout")}
            </Notice>
            <CommandLine text={link.url!} />
            <Button onClick={() => setLink(undefined)}>{t("common.close")}</Button>
          </div>
        )}
      </div>
      <ul className={list}>
        {people.map((it) => (
          <One key={it.id} user={it} onMade={made} onChange={onChange} />
        ))}
      </ul>
      <Invite onMade={made} />
    </Section>
  );
}

function Invite({ onMade }: { onMade: (user: User) => void }) {
  const [login, setLogin] = useState("");
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [kind, setKind] = useState("human");
  const send = async () => {
    onMade(await call<User>("user/add", { login: login.trim(), name: name.trim() || undefined, email: email.trim() || undefined, kind }));
    setLogin("");
    setName("");
    setEmail("");
  };
  return (
    <Form label={t("people.add")} ready={login.trim() !== ""} onSend={send}>
      <Field label={t("people.login")} value={login} onChange={setLogin} />
      <Field label={t("people.name")} value={name} onChange={setName} />
      <Field label={t("people.email")} type="email" value={email} onChange={setEmail} />
      <Pick
        label={t("people.kind")}
        value={kind}
        onChange={setKind}
        options={[
          { value: "human", text: t("people.human") },
          { value: "service", text: t("people.service") },
        ]}
      />
    </Form>
  );
}

function One({ user, onMade, onChange }: { user: User; onMade: (user: User | undefined) => void; onChange: () => void }) {
  const [asking, setAsking] = useState(false);
  const disabled = user.state === "disabled";
  const made = !user.created_at.startsWith("0001"); // the user of the machine was always there
  const link = async (method: "invite" | "reset") => onMade(await tried(call<User>(`user/${method}`, { login: user.login })));
  const move = async (method: "enable" | "disable") => {
    if (await succeeded(call(`user/${method}`, { login: user.login }))) onChange();
    setAsking(false);
  };
  return (
    <li className={row}>
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium wrap-anywhere">
          {user.login}
          {user.name && user.name !== user.login && <span className="ml-2 font-normal text-muted">{user.name}</span>}
        </p>
        <p className="text-[12px] text-muted wrap-anywhere">
          {[user.email, made && t("people.since", { time: moment(user.created_at) })].filter(Boolean).join(" · ")}
        </p>
      </div>
      {user.kind === "service" && <Badge>{t("people.service")}</Badge>}
      <Badge tone={disabled ? "bad" : user.state === "active" ? "ok" : "warn"}>{maybe("people.state", user.state)}</Badge>
      {user.kind === "human" && !disabled && (
        <Button
          aria-label={t(user.state === "invited" ? "people.inviteNamed" : "people.resetNamed", { login: user.login })}
          onClick={() => void link(user.state === "invited" ? "invite" : "reset")}
        >
          {t(user.state === "invited" ? "people.invite" : "people.reset")}
        </Button>
      )}
      {disabled ? (
        <Button aria-label={t("people.enableNamed", { login: user.login })} onClick={() => void move("enable")}>
          {t("people.enable")}
        </Button>
      ) : (
        <Button look="danger" aria-label={t("people.disableNamed", { login: user.login })} onClick={() => setAsking(true)}>
          {t("people.disable")}
        </Button>
      )}
      <Confirm open={asking} label={t("people.disableNamed", { login: user.login })} onClose={() => setAsking(false)}>
        <h2 className="text-[15px] font-semibold wrap-anywhere">{t("people.disableNamed", { login: user.login })}</h2>
        <p className="mt-1 text-[13px] text-muted">{t("people.disableText")}</p>
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t("common.cancel")}</Button>
          <Button look="danger" onClick={() => void move("disable")}>
            {t("people.disable")}
          </Button>
        </div>
      </Confirm>
    </li>
  );
}
