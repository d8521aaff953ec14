import { t } from "../i18n";
import "../i18n/later";
import { placeOfHit, useHits } from "../state/search";
import { Excerpt } from "../ui/excerpt";
import { Spinner } from "../ui/icons";
import { Link } from "../ui/link";

/** Found lists the places in messages where a text stands; each leads there. */
export default function Found({ asked, archived, onPick }: { asked: string; archived: boolean; onPick?: () => void }) {
  const { items, done, failed } = useHits(asked, archived);
  return (
    <section aria-label={t("palette.found")}>
      <h2 className="flex items-center gap-2 px-2 pb-1 pt-2 text-[11.5px] font-medium text-faint">
        {t("palette.found")} {!done && <Spinner className="size-3" />}
      </h2>
      <ul>
        {items.map((hit) => (
          <li key={hit.item_id + hit.seq}>
            <Link to={placeOfHit(hit)} onClick={onPick} className="block rounded-lg px-2 py-1.5 hover:bg-hover">
              <span className="block truncate text-[13px]">{hit.session.title || t("history.untitled")}</span>
              <Excerpt hit={hit} className="line-clamp-3" />
            </Link>
          </li>
        ))}
      </ul>
      {done && items.length === 0 && <p className="px-2 py-1 text-[13px] text-muted">{t(failed ? "history.error" : "history.none")}</p>}
    </section>
  );
}
