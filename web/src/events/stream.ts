import { proofHeader } from "../api/proof";
import type { Stream } from "./hub";

/** fetchStream reads server-sent events by a request that can carry the proof: an EventSource sends no header. */
export function fetchStream(url: string, proof: string, more: Record<string, string> = {}): Stream {
  const ended = new AbortController();
  const named = new Map<string, (event: { data: string }) => void>();
  const stream: Stream = {
    onerror: null,
    onmessage: null,
    addEventListener: (type, listener) => named.set(type, listener),
    close: () => ended.abort(),
  };
  const deliver = (type: string, data: string) => {
    if (!ended.signal.aborted) (type ? named.get(type) : stream.onmessage)?.({ data });
  };
  const read = async () => {
    const response = await fetch(url, { headers: { accept: "text/event-stream", ...proofHeader(proof), ...more }, signal: ended.signal });
    if (!response.ok || !response.body) throw new Error(`the stream was refused with ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const next = parser(deliver);
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) next(piece.value);
  };
  const over = () => ended.signal.aborted || stream.onerror?.();
  read().then(over, over);
  return stream;
}

/** parser takes pieces of a text/event-stream as the server writes it: lines end with \n, and data is one line. */
export function parser(deliver: (type: string, data: string) => void): (piece: string) => void {
  let rest = "";
  let type = "";
  let data: string | undefined;
  return (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith("event: ")) type = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
      else if (line === "") {
        if (data !== undefined) deliver(type, data);
        type = "";
        data = undefined;
      }
    }
  };
}
