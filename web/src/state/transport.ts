import { DefaultChatTransport } from "ai";
import { problemOf } from "../api/http";
import { proof, proofHeader } from "../api/proof";
import type { ChatMessage } from "../api/types";

export interface Settings {
  provider?: string;
  model?: string;
  effort?: string;
  executionProfile?: string;
}

/**
 * chatTransport calls taken as soon as thole has a message: before that, a lost line says nothing about it. It sends only
 * the newest message: the server knows the others, and a chat that was deleted meanwhile is not made again. Refusals keep
 * their class, and a lost line stays a TypeError, which is how the chat knows that the answer can be resumed.
 */
export const chatTransport = (settings: () => Settings, taken: () => void): DefaultChatTransport<ChatMessage> =>
  new DefaultChatTransport<ChatMessage>({
    api: "/api/chat",
    fetch: async (input, init) => {
      const headers = new Headers(init?.headers);
      for (const [name, value] of Object.entries(proofHeader(proof()))) headers.set(name, value);
      headers.set("accept", "text/event-stream, application/json"); // refusals with all that is known of them
      const response = await fetch(input, { ...init, headers });
      if (!response.ok) throw await problemOf(response);
      if (init?.method === "POST") taken();
      return response;
    },
    prepareSendMessagesRequest: ({ id, messages, trigger }) => {
      const last = messages.findLast((message) => message.role === "user");
      return {
        // A retry is a run of its own in the same session; regenerate-message would fork it.
        body: { id, trigger: "submit-message", messages: last ? [last] : [], approvals: "stream", existing: true, ...settings() },
        headers: last ? { "idempotency-key": `${trigger}-${last.id}` } : undefined,
      };
    },
  });
