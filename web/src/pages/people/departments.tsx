import { useState } from "react";
import { t } from "../../i18n";
import "../../i18n/later";
import { Button, Choice, IconButton } from "../../ui/controls";
import { CloseIcon } from "../../ui/icons";
import { succeeded } from "../../ui/toast";
import { Section } from "../page";
import { call, type Department, type Everybody, nameOf } from "./calls";
import { Field, Form, list, Pick, row } from "./form";

/** Departments are groups of users; what is granted on one counts for those below it too. */
export function Departments({ all, onChange }: { all: Everybody; onChange: () => void }) {
  const [name, setName] = useState("");
  const [parent, setParent] = useState("");
  const send = async () => {
    await call("department/add", { name: name.trim(), parent: parent || undefined });
    setName("");
    onChange();
  };
  return (
    <Section title={t("people.departments")}>
      {all.departments.length === 0 ? (
        <p className="text-[13px] text-muted">{t("people.noDepartments")}</p>
      ) : (
        <ul className={list}>
          {all.departments.map((it) => (
            <One key={it.id} department={it} all={all} onChange={onChange} />
          ))}
        </ul>
      )}
      <Form label={t("people.addDepartment")} ready={name.trim() !== ""} onSend={send}>
        <Field label={t("people.departmentName")} value={name} onChange={setName} />
        <Pick
          label={t("people.below")}
          value={parent}
          onChange={setParent}
          options={[{ value: "", text: t("people.top") }, ...all.departments.map((it) => ({ value: it.name, text: it.name }))]}
        />
      </Form>
    </Section>
  );
}

function One({ department, all, onChange }: { department: Department; all: Everybody; onChange: () => void }) {
  const { name, members = [] } = department;
  const change = async (method: "join" | "leave" | "remove", user?: string) => {
    if (await succeeded(call(`department/${method}`, { name, user }))) onChange();
  };
  const others = all.users.filter((it) => !members.includes(it.id) && it.state !== "disabled");
  return (
    <li className={row}>
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium wrap-anywhere">
          {name}
          {department.parent && <span className="ml-2 font-normal text-muted">{t("people.belowNamed", { name: nameOf(all, department.parent) })}</span>}
        </p>
        <ul aria-label={t("people.membersOf", { name })} className="mt-1 flex flex-wrap gap-1.5">
          {members.map((id) => (
            <li key={id} className="flex items-center rounded-lg bg-raised pl-2 text-[12.5px]">
              {nameOf(all, id)}
              <IconButton
                label={t("people.leaveNamed", { login: nameOf(all, id), name })}
                className="size-7"
                onClick={() => void change("leave", nameOf(all, id))}
              >
                <CloseIcon className="size-3.5" />
              </IconButton>
            </li>
          ))}
        </ul>
      </div>
      {others.length > 0 && (
        <Choice
          label={t("people.joinNamed", { name })}
          value=""
          onChange={(login) => void change("join", login)}
          options={[{ value: "", text: t("people.join") }, ...others.map((it) => ({ value: it.login, text: it.login }))]}
        />
      )}
      <Button look="danger" aria-label={t("people.removeNamed", { name })} onClick={() => void change("remove")}>
        {t("people.remove")}
      </Button>
    </li>
  );
}
