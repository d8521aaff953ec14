import { useEffect, useMemo, useRef } from "react";
import { composerBox } from "../chat/composer-box";
import { useConversation } from "../chat/context";
import { find } from "../chat/find/state";
import { t } from "../i18n";
import { showPanel, toggleChats, toggleDetails } from "../state/layout";
import { prefs } from "../state/prefs";
import { go, route } from "../state/route";
import { useStore } from "../state/store";
import { Confirm, Modal } from "../ui/dialog";
import { later } from "../ui/later";
import { tried } from "../ui/toast";
import { ofChat, ofPage } from "./actions";
import { isTyping, type ShortcutName, shortcutOf } from "./chords";
import { step } from "./deeds";
import { closing, opened } from "./open";

const Palette = later(() => import("./palette"));
const Overview = later(() => import("./overview"));
const Rename = later(() => import("./rename"));

/** waits: the palette is wanted, but its field is not there yet. */
const waits = (event: KeyboardEvent): boolean => {
  if (opened.get() !== "palette" || event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return false;
  return !isTyping(event.target) || !(event.target as Element).closest("dialog"); // the field of the page has the focus until the dialog is drawn
};

/** Keys listens to the keyboard for the whole page and shows what it opens. */
export function Keys() {
  const conversation = useConversation();
  const what = useStore(opened);
  const session = useStore(conversation.side, (it) => it.session); // it may come after the palette
  const early = useRef(""); // what was typed before the palette came
  if (what !== "palette") early.current = "";

  useEffect(() => {
    const inChat = () => route.get().page === "chat" || route.get().page === "new";
    const hasSession = () => route.get().page === "chat" && conversation.side.get().session !== undefined;
    // Each returns whether it took the key: the browser keeps one that has nothing to do here.
    const deeds: Record<ShortcutName, () => boolean> = {
      palette: () => (opened.set((now) => (now === "palette" ? undefined : "palette")), true),
      overview: () => (opened.set((now) => (now === "overview" ? undefined : "overview")), true),
      new: () => (go({ page: "new" }), true),
      composer: () => inChat() && (composerBox.current?.focus(), true),
      next: () => (step(current(), 1), true),
      previous: () => (step(current(), -1), true),
      stop: () => inChat() && (void tried(conversation.stop()), true),
      chats: () => (toggleChats(), true),
      details: () => inChat() && (toggleDetails(), true),
      changes: () => inChat() && (showPanel("changes"), true),
      find: () => hasSession() && (find.open(conversation.id), true),
    };
    const current = () => (route.get().page === "chat" ? conversation.id : undefined);
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      if (waits(event)) {
        early.current += event.key;
        return event.preventDefault();
      }
      const name = shortcutOf(event, event.target);
      if (!name || (prefs.get().shortcuts === false && name !== "palette")) return;
      // What lies over the page has the keys to itself; what was opened by a key is closed by it.
      if (document.querySelector("dialog[open]") && name !== opened.get()) return;
      if (deeds[name]()) event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [conversation]);

  const actions = useMemo(
    () => {
      if (what !== "palette") return [];
      return [...ofChat(conversation, session, { focus: () => composerBox.current?.focus(), find: () => find.open(conversation.id) }), ...ofPage()];
    },
    [what, conversation, session],
  );
  return (
    <>
      <Modal
        open={what === "palette"}
        label={t("palette.title")}
        onClose={closing.palette}
        className="mx-auto mb-auto mt-[10vh] max-h-[70vh] w-[min(40rem,calc(100vw-1.5rem))] overflow-hidden rounded-2xl border border-line shadow-pop"
      >
        <Palette actions={actions} early={() => early.current} onClose={closing.palette} />
      </Modal>
      <Confirm
        open={what === "overview"}
        label={t("keys.title")}
        onClose={closing.overview}
        className="max-h-[90dvh] w-[min(46rem,calc(100vw-1.5rem))] overflow-y-auto"
      >
        <Overview onClose={closing.overview} />
      </Confirm>
      <Confirm open={what === "rename"} label={t("act.rename")} onClose={closing.rename}>
        <Rename conversation={conversation} onClose={closing.rename} />
      </Confirm>
    </>
  );
}
