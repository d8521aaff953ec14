import { useState } from "react";
import { maybe, t } from "../../i18n";
import "../../i18n/later";
import { Badge, Button } from "../../ui/controls";
import { moment } from "../../ui/time";
import { succeeded } from "../../ui/toast";
import { Section } from "../page";
import { call, type Everybody, type Grant, nameOf, type Place, placesOf, type Role } from "./calls";
import { Field, Form, list, Pick, row } from "./form";

/** Grants are who has which role, and where. */
export function Grants({ all, onChange }: { all: Everybody; onChange: () => void }) {
  return (
    <Section title={t("people.grants")}>
      {all.grants.length === 0 ? (
        <p className="text-[13px] text-muted">{t("people.noGrants")}</p>
      ) : (
        <ul className={list}>
          {all.grants.map((it) => (
            <One key={it.id} grant={it} all={all} onChange={onChange} />
          ))}
        </ul>
      )}
      <Give all={all} onChange={onChange} />
    </Section>
  );
}

function One({ grant, all, onChange }: { grant: Grant; all: Everybody; onChange: () => void }) {
  const who = nameOf(all, grant.to_id);
  const role = maybe("role", grant.role);
  const where = maybe("place", grant.on) + (grant.on_id ? ` ${nameOf(all, grant.on_id)}` : "");
  const revoke = async () => {
    if (await succeeded(call("grant/revoke", { id: grant.id }))) onChange();
  };
  return (
    <li className={row}>
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium wrap-anywhere">{grant.to === "department" ? t("people.everyoneIn", { name: who }) : who}</p>
        <p className="text-[12px] text-muted wrap-anywhere">
          {[where, grant.expires_at && t("settings.until", { time: moment(grant.expires_at) }), grant.source && t("people.from", { name: grant.source })]
            .filter(Boolean)
            .join(" · ")}
        </p>
      </div>
      <Badge>{role}</Badge>
      <Button look="danger" aria-label={t("people.revokeNamed", { role, who })} onClick={() => void revoke()}>
        {t("people.revoke")}
      </Button>
    </li>
  );
}

const lives = [0, 1, 7, 30, 90] as const;

function Give({ all, onChange }: { all: Everybody; onChange: () => void }) {
  const [to, setTo] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [place, setPlace] = useState<Place>("department");
  const [name, setName] = useState("");
  const [days, setDays] = useState("0");
  const at = placesOf[role].includes(place) ? place : placesOf[role][0]!;
  const known = at === "user" ? all.users.map((it) => it.login) : at === "department" ? all.departments.map((it) => it.name) : undefined;
  const on = known && !known.includes(name) ? "" : name;
  const send = async () => {
    const [kind, who] = [to.slice(0, to.indexOf(":")), to.slice(to.indexOf(":") + 1)];
    await call("grant/add", { [kind]: who, role, on: at, name: at === "platform" ? undefined : on.trim(), expires_in: Number(days) * 86_400 || undefined });
    setName("");
    onChange();
  };
  const none = { value: "", text: t("people.choose") };
  return (
    <Form label={t("people.give")} ready={to !== "" && (at === "platform" || on.trim() !== "")} onSend={send}>
      <Pick
        label={t("people.to")}
        value={to}
        onChange={setTo}
        options={[
          none,
          ...all.users.filter((it) => it.state !== "disabled").map((it) => ({ value: `user:${it.login}`, text: it.login })),
          ...all.departments.map((it) => ({ value: `department:${it.name}`, text: t("people.everyoneIn", { name: it.name }) })),
        ]}
      />
      <Pick
        label={t("people.role")}
        value={role}
        onChange={(value) => setRole(value as Role)}
        options={(Object.keys(placesOf) as Role[]).map((it) => ({ value: it, text: t(`role.${it}`) }))}
      />
      <Pick
        label={t("people.on")}
        value={at}
        onChange={(value) => setPlace(value as Place)}
        options={placesOf[role].map((it) => ({ value: it, text: t(`place.${it}`) }))}
      />
      {known && <Pick label={t("people.which")} value={on} onChange={setName} options={[none, ...known.map((it) => ({ value: it, text: it }))]} />}
      {!known && at !== "platform" && <Field label={t("people.which")} value={name} onChange={setName} />}
      <Pick
        label={t("people.life")}
        value={days}
        onChange={setDays}
        options={lives.map((it) => ({ value: String(it), text: it === 0 ? t("people.always") : t(it === 1 ? "tokens.day" : "usage.days", { n: it }) }))}
      />
    </Form>
  );
}
