import { createContext, useCallback, useContext } from "react";
import type { Question } from "../api/types";
import type { Conversation } from "../state/conversation";
import { useStore } from "../state/store";
import type { Side } from "../state/fold";

export const ConversationContext = createContext<Conversation | undefined>(undefined);

export function useConversation(): Conversation {
  const conversation = useContext(ConversationContext);
  if (!conversation) throw new Error("no conversation around this component");
  return conversation;
}

export function useSide<T>(select: (side: Side) => T): T {
  return useStore(useConversation().side, select);
}

/** useQuestion is the newest that is known of a question: the stream's word or the events', whichever is settled. */
export function useQuestion(given: Question): Question {
  const known = useSide(useCallback((side: Side) => side.questions.find((it) => it.question_id === given.question_id), [given.question_id]));
  if (!known) return given;
  return given.state === "pending" ? { ...given, ...known } : { ...known, ...given };
}
