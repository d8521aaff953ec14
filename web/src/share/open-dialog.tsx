import { t } from "../i18n";
import { useStore } from "../state/store";
import { Confirm } from "../ui/dialog";
import { later } from "../ui/later";
import { sharing } from "./open";

const Links = later(() => import("./links"));
const close = () => sharing.set(undefined);

/** Sharing is the dialog of a chat's share links. */
export function Sharing() {
  const id = useStore(sharing);
  return (
    <Confirm open={id !== undefined} label={t("share.title")} onClose={close} className="max-h-[90dvh] w-[min(34rem,calc(100vw-1.5rem))] overflow-y-auto">
      {id && <Links session={id} onClose={close} />}
    </Confirm>
  );
}
