import { type Route, route } from "./route";
import { useStore } from "./store";

// A link to a message is the address of its chat with `#m-` and the message's id.
const mark = "m-";

/** anchorOf is the message that an address points to. */
export const anchorOf = (to: Route): string | undefined =>
  to.page === "chat" && to.message?.startsWith(mark) ? to.message.slice(mark.length) : undefined;

export const useAnchored = (): string | undefined => useStore(route, anchorOf);

/** toMessage is the address of a message. */
export const toMessage = (chat: string, message: string): Route => ({ page: "chat", id: chat, message: mark + message });
