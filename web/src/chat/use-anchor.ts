import { useEffect, useRef } from "react";
import type { ChatMessage } from "../api/types";
import { t } from "../i18n";
import { useAnchored } from "../state/anchor";
import { keyOf } from "../state/merge";
import { useStore } from "../state/store";
import { say } from "../ui/toast";
import { useReading } from "./context";
import type { Row } from "./rows";

const page = 50; // runs that are read at once on the way to a message

export const isOf = (message: ChatMessage, id: string): boolean => message.id === id || keyOf(message) === id;
const messageOf = (row: Row): ChatMessage | undefined => ("message" in row ? row.message : undefined);

/** useAnchor goes to the message that the address points to, however far up it is, and returns its id so that it can be marked. */
export function useAnchor(rows: Row[], jump: (key: string, align: "start") => void): string | undefined {
  const conversation = useReading();
  const wanted = useAnchored();
  const history = useStore(conversation.history);
  const done = useRef<string>(undefined);
  useEffect(() => {
    if (!wanted) done.current = undefined;
    if (!wanted || done.current === wanted || rows.length === 0) return;
    const row = rows.find((it) => {
      const message = messageOf(it);
      return message !== undefined && isOf(message, wanted);
    });
    if (row) {
      done.current = wanted;
      jump(row.key, "start");
    } else if (conversation.chat.messages.some((it) => isOf(it, wanted))) {
      return; // it was read; what is drawn comes a little later
    } else if (history.cursor && !history.problem) {
      if (history.state === "idle") void conversation.loadOlder(page);
    } else if (history.state === "idle" && !history.problem) {
      done.current = wanted;
      say(t("chat.noMessage"));
    }
  }, [conversation, wanted, rows, history, jump]);
  return wanted;
}
