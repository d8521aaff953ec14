import { DefaultChatTransport } from "ai";
import { Problem } from "../api/http";
import type { ChatMessage } from "../api/types";

export interface Settings {
  provider?: string;
  model?: string;
  effort?: string;
  executionProfile?: string;
}

/**
 * chatTransport sends only the newest message: the server knows the others. Refusals keep their class, and a lost line
 * stays a TypeError, which is how the chat tells that the answer can be resumed.
 */
export const chatTransport = (settings: () => Settings): DefaultChatTransport<ChatMessage> =>
  new DefaultChatTransport<ChatMessage>({
    api: "/api/chat",
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.ok) return response;
      const text = (await response.text()).trim();
      throw new Problem(text || response.statusText, response.status, response.headers.get("x-thole-code") ?? "internal", undefined, response.headers.get("x-trace-id") ?? undefined);
    },
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => {
      const last = messages.findLast((message) => message.role === "user");
      return {
        body: { id, trigger, messageId, messages: last ? [last] : [], approvals: "stream", ...settings() },
        headers: last ? { "idempotency-key": `${trigger}-${last.id}` } : undefined,
      };
    },
  });
