import { t } from "../../i18n";
import "../../i18n/later";
import { Spinner } from "../../ui/icons";
import { Failed, Page } from "../page";
import { useEverybody } from "./calls";
import { Departments } from "./departments";
import { Grants } from "./grants";
import { Users } from "./users";

/** People is where those who may manage the users of a server. It shows what `thole user`, `department` and `grant` do. */
export default function People() {
  const { all, problem, reload } = useEverybody();
  return (
    <Page title={t("people.title")} about={t("people.about")}>
      {problem && <Failed problem={problem} reload={reload} />}
      {!all && !problem && <Spinner />}
      {all && (
        <>
          <Users all={all} onChange={reload} />
          <Departments all={all} onChange={reload} />
          <Grants all={all} onChange={reload} />
        </>
      )}
    </Page>
  );
}
