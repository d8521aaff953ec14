import { DefaultChatTransport } from "ai";
import { problemOf } from "../api/http";
import type { ChatMessage } from "../api/types";

export interface Settings {
  provider?: string;
  model?: string;
  effort?: string;
  executionProfile?: string;
}

/**
 * chatTransport calls taken as soon as thole has a message: before that, a lost line says nothing about it. It sends only the newest message: the server knows the others. Refusals keep their class, and a lost line
 * stays a TypeError, which is how the chat knows that the answer can be resumed.
 */
export const chatTransport = (settings: () => Settings, taken: () => void): DefaultChatTransport<ChatMessage> =>
  new DefaultChatTransport<ChatMessage>({
    api: "/api/chat",
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (!response.ok) throw await problemOf(response);
      if (init?.method === "POST") taken();
      return response;
    },
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => {
      const last = messages.findLast((message) => message.role === "user");
      return {
        body: { id, trigger, messageId, messages: last ? [last] : [], approvals: "stream", ...settings() },
        headers: last ? { "idempotency-key": `${trigger}-${last.id}` } : undefined,
      };
    },
  });
