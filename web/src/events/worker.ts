import { Hub, type Line, type Stream, type ToHub } from "./hub";

const hub = new Hub((url) => new EventSource(url) as unknown as Stream);

// The page's types are in force here too; of a shared worker's only this one is needed.
const scope = self as unknown as { onconnect: (connection: MessageEvent) => void };

// The worker holds a lock as long as it lives, and every tab waits for it: no other sign shows a tab that its worker ended.
const life = `thole-worker-${Math.random().toString(36).slice(2)}`;
const alive = new Promise<void>((held) => {
  void navigator.locks.request(life, () => {
    held();
    return new Promise<never>(() => {});
  });
});

scope.onconnect = (connection) => {
  const port = connection.ports[0]!;
  const line: Line = { send: (message) => port.postMessage(message) };
  let gone = false;
  const leave = () => {
    gone = true;
    hub.leave(line);
    port.close();
  };
  port.onmessage = ({ data }: MessageEvent<ToHub>) => {
    if (gone) return; // said before the tab ended, read after: nobody would ever take it back
    if (data.type === "bye") return leave();
    hub.receive(line, data);
    // The tab holds this lock as long as it lives, however it ends.
    if (data.type === "hello" && data.lock) void navigator.locks.request(data.lock, leave);
  };
  port.addEventListener("close", leave); // a tab that ended before it said hello
  void alive.then(() => line.send({ type: "here", lock: life }));
};
