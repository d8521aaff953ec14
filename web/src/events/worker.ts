import { Hub, type Line, type Stream, type ToHub } from "./hub";

const hub = new Hub((url) => new EventSource(url) as unknown as Stream);

// The page's types are in force here too; of a shared worker's only this one is needed.
const scope = self as unknown as { onconnect: (connection: MessageEvent) => void };

scope.onconnect = (connection) => {
  const port = connection.ports[0]!;
  const line: Line = { send: (message) => port.postMessage(message) };
  port.onmessage = (event: MessageEvent<ToHub | { type: "hello"; lock: string }>) => {
    if (event.data.type !== "hello") return hub.receive(line, event.data);
    hub.join(line);
    // The tab holds this lock as long as it lives, however it ends.
    void navigator.locks.request(event.data.lock, () => hub.leave(line));
  };
};
