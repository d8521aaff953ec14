import { post, request } from "../api/http";
import type { QueuedMessage, Run } from "../api/types";
import { inputOf } from "./attached";
import type { Message } from "./outbox";

const input = ({ text, files }: Message) => [...(text ? [{ type: "text", text }] : []), ...files.map(inputOf)];

/** Queued are the messages of a session that wait for their turn, and those that go into a run that is under way. */
export class Queued {
  constructor(private readonly session: string) {}

  private at = (message: QueuedMessage): string => `/sessions/${this.session}/queue/${message.id}`;

  add = (message: Message): Promise<QueuedMessage> =>
    post(`/sessions/${this.session}/queue`, { input: input(message), client_id: message.id, start: true }, `queue-${message.id}`);

  steer = (message: Message, run: string | undefined): Promise<Run> =>
    post(`/runs/${run}/steer`, { input: input(message), client_id: message.id }, `steer-${message.id}`);

  edit = async (message: QueuedMessage, text: string): Promise<void> => {
    const images = message.input.filter((part) => part.type !== "text");
    await request("PATCH", this.at(message), { body: { input: [{ type: "text", text }, ...images] } });
  };

  remove = async (message: QueuedMessage): Promise<void> => void (await request("DELETE", this.at(message)));

  promote = (message: QueuedMessage): Promise<Run> => post(`${this.at(message)}/promote`);

  start = (message: QueuedMessage): Promise<Run> => post(`${this.at(message)}/start`);

  order = async (order: string[]): Promise<void> => void (await request("PUT", `/sessions/${this.session}/queue/order`, { body: { order } }));
}
