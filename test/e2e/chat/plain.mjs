import { AbstractChat } from "ai";

// A chat without a framework: state in a plain object.
class PlainState {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (m) => (this.messages = this.messages.concat(m));
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => (this.messages = [...this.messages.slice(0, i), structuredClone(m), ...this.messages.slice(i + 1)]);
  snapshot = (v) => structuredClone(v);
}
export class Chat extends AbstractChat {
  constructor(init) {
    super({ ...init, state: new PlainState() });
  }
}
