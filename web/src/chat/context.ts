import { createContext, useCallback, useContext } from "react";
import type { ChatMessage, Question } from "../api/types";
import type { Conversation } from "../state/conversation";
import { useStore } from "../state/store";
import type { Side } from "../state/fold";

/** Reading is what it takes to draw a chat; shared: by a reader who can do nothing else with it. */
export type Reading = Pick<Conversation, "id" | "side" | "history" | "loadOlder"> & {
  readonly chat: { readonly messages: ChatMessage[] };
  readonly shared?: true;
};

export const ConversationContext = createContext<Reading | undefined>(undefined);

export function useReading(): Reading {
  const reading = useContext(ConversationContext);
  if (!reading) throw new Error("no conversation around this component");
  return reading;
}

export const useShared = (): boolean => useContext(ConversationContext)?.shared === true;

export function useConversation(): Conversation {
  const conversation = useReading();
  if (conversation.shared) throw new Error("this conversation can only be read");
  return conversation as Conversation;
}

export function useSide<T>(select: (side: Side) => T): T {
  return useStore(useReading().side, select);
}

/** useQuestion is the newest that is known of a question: the stream's word or the events', whichever is settled. */
export function useQuestion(given: Question): Question {
  const known = useSide(useCallback((side: Side) => side.questions.find((it) => it.question_id === given.question_id), [given.question_id]));
  if (!known) return given;
  return given.state === "pending" ? { ...given, ...known } : { ...known, ...given };
}
