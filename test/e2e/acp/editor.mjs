// An editor: the protocol's own library on an agent that it starts. A test on standard
// input says what the editor's user does, one JSON object a line, and hears on standard
// output what the editor was sent and every line of both sides.
//
//   node editor.mjs LIBRARY PROGRAM ARG…
//   in:  {id, method, params} a request; {method, params} a notification;
//        {answer, result|error} the user's answer to an ask; {pause: bool} stops reading
//   out: {id, result|error}; {update}; {ask, method, params}; {withdrawn: ask};
//        {wire: "agent"|"client", line}
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { TransformStream } from "node:stream/web";
import { pathToFileURL } from "node:url";

const [library, program, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(library).href);
const say = (m) => process.stdout.write(JSON.stringify(m) + "\n");

const agent = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });

let reading = Promise.resolve();
let resume = () => {};
const pause = (yes) => {
  if (!yes) return resume();
  reading = new Promise((done) => (resume = done));
};

// tee reports lines as they pass. What the agent says waits while the editor does not read.
const tee = (who) => {
  let rest = "";
  const text = new TextDecoder();
  return new TransformStream({
    async transform(bytes, out) {
      if (who === "agent") await reading;
      const lines = (rest + text.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) say({ wire: who, line });
      out.enqueue(bytes);
    },
  }, { highWaterMark: 1 }, { highWaterMark: 1 });
};
const output = tee("client");
output.readable.pipeTo(Writable.toWeb(agent.stdin)).catch(() => {});
const input = Readable.toWeb(agent.stdout).pipeThrough(tee("agent"));

let asks = 0;
const open = new Map();
const ask = ({ method, params, signal }) =>
  new Promise((resolve, reject) => {
    const ask = ++asks;
    open.set(ask, { resolve, reject });
    signal.addEventListener("abort", () => {
      say({ withdrawn: ask });
      reject(acp.RequestError.requestCancelled());
    });
    say({ ask, method, params });
  });
const connection = acp
  .client({ name: "editor" })
  .onRequest(acp.methods.client.session.requestPermission, ask)
  .onRequest(acp.methods.client.elicitation.create, ask)
  .onNotification(acp.methods.client.session.update, ({ params }) => say({ update: params }))
  .connect(acp.ndJsonStream(output.writable, input));

for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if ("pause" in m) pause(m.pause);
  else if ("answer" in m) {
    const { resolve, reject } = open.get(m.answer);
    m.error ? reject(new acp.RequestError(m.error.code, m.error.message)) : resolve(m.result);
  } else if (m.id === undefined) await connection.agent.notify(m.method, m.params);
  else
    connection.agent.request(m.method, m.params).then(
      (result) => say({ id: m.id, result }),
      (e) => say({ id: m.id, error: { code: e.code ?? 0, message: e.message, data: e.data } }),
    );
}
agent.stdin.end();
