import { Fragment } from "react";
import { t } from "../i18n";
import "../i18n/later";
import { type Chord, spell } from "./chords";

/** Chords are keys as they stand on the keyboard. */
export function Chords({ chords }: { chords: Chord[] }) {
  return (
    <span className="flex shrink-0 items-center gap-1 text-[11.5px] text-faint">
      {chords.map((chord, index) => (
        <Fragment key={index}>
          {index > 0 && <span className="px-0.5">{t("keys.or")}</span>}
          {spell(chord).map((key) => (
            <kbd key={key} className="min-w-5 rounded border border-line bg-raised px-1 text-center font-sans leading-[18px] text-muted">
              {key}
            </kbd>
          ))}
        </Fragment>
      ))}
    </span>
  );
}
