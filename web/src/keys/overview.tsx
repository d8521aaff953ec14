import { t, type Key } from "../i18n";
import "../i18n/later";
import { prefs, setPrefs } from "../state/prefs";
import { useStore } from "../state/store";
import { Button } from "../ui/controls";
import { type Chord, type ShortcutName, chordsOf } from "./chords";
import { Chords } from "./overview-keys";

const groups: [Key, ShortcutName[]][] = [
  ["keys.anywhere", ["palette", "overview", "new", "next", "previous", "chats", "details"]],
  ["keys.chat", ["composer", "stop", "find", "changes"]],
];

// Keys that belong to the message field itself.
const inField: [Key, Chord[]][] = [
  ["keys.send", [{ key: "Enter" }]],
  ["keys.line", [{ key: "Enter", shift: true }]],
  ["keys.steer", [{ key: "Enter", mod: true }]],
  ["keys.earlier", [{ key: "↑" }, { key: "↓" }]],
  ["keys.commands", [{ key: "/" }]],
  ["keys.files", [{ key: "@" }]],
];

/** Overview lists every key of the page, and turns them off. */
export default function Overview({ onClose }: { onClose: () => void }) {
  const on = useStore(prefs, (it) => it.shortcuts !== false);
  const lists: [Key, [string, Chord[]][]][] = [
    ...groups.map(([title, names]): [Key, [string, Chord[]][]] => [title, names.map((name) => [t(`keys.${name}` as Key), chordsOf(name)])]),
    ["keys.field", inField.map(([text, chords]) => [t(text), chords])],
  ];
  return (
    <>
      <h2 className="text-[15px] font-semibold">{t("keys.title")}</h2>
      <p className="mt-1 text-[12.5px] text-muted">{t("keys.about")}</p>
      <div className="mt-3 grid gap-x-8 gap-y-4 sm:grid-cols-2">
        {lists.map(([title, rows]) => (
          <section key={title} aria-label={t(title)}>
            <h3 className="mb-1 text-[11.5px] font-medium text-faint">{t(title)}</h3>
            <dl>
              {rows.map(([text, chords]) => (
                <div key={text} className="flex min-h-8 items-center justify-between gap-3 border-b border-line text-[13px] last:border-0">
                  <dt>{text}</dt>
                  <dd>
                    <Chords chords={chords} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <div className="mt-4 flex flex-wrap items-center justify-between gap-3">
        <label className="flex cursor-pointer items-center gap-2 text-[13px]">
          <input type="checkbox" checked={on} onChange={(event) => setPrefs({ shortcuts: event.target.checked })} className="accent-accent" />
          {t("keys.on")}
        </label>
        <Button onClick={onClose}>{t("common.close")}</Button>
      </div>
    </>
  );
}
