import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Question, Reply } from "../api/types";
import { emptySide, type Side } from "../state/fold";
import { Store } from "../state/store";
import type { Conversation } from "../state/conversation";
import { OpenAsk } from "./ask-card";
import { ConversationContext } from "./context";

afterEach(cleanup);

const asked = async (schema: unknown) => {
  const replies: Reply[] = [];
  const question = { question_id: "q", kind: "elicitation", state: "pending", title: "shop asks", schema } as Question;
  const side = { side: new Store<Side>(emptySide) } as unknown as Conversation;
  render(
    <ConversationContext value={side}>
      <OpenAsk question={question} answer={async (reply) => void replies.push(reply)} />
    </ConversationContext>,
  );
  const answer = await screen.findByRole("button", { name: "Answer" }); // comes in a file of its own
  return { replies, answer: () => fireEvent.click(answer) };
};
const field = (name: string | RegExp) => screen.getByLabelText<HTMLInputElement>(name);
const type = (name: string | RegExp, value: string) => fireEvent.change(field(name), { target: { value } });

const schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 2 },
    mail: { type: "string", format: "email", title: "Mail" },
    cups: { type: "integer", minimum: 1, maximum: 4 },
    price: { type: "number" },
    hot: { type: "boolean", title: "Served hot", default: true },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
    extras: { type: "array", maxItems: 2, items: { anyOf: [{ const: "m", title: "Milk" }, { const: "h", title: "Honey" }, { const: "l", title: "Lemon" }] } },
  },
  required: ["name", "cups", "size"],
};

test("every field is checked before the answer goes, and the first wrong one is gone to", async () => {
  const { replies, answer } = await asked(schema);
  expect(screen.queryAllByRole("alert")).toHaveLength(0);
  type(/Mail/, "nobody");
  type(/cups/, "9");
  for (const extra of ["Lemon", "Milk", "Honey"]) fireEvent.click(field(extra));
  answer();
  const faults = screen.getAllByRole("alert").map((it) => it.textContent);
  expect(faults).toEqual(["Fill in this field.", "Enter a mail address.", "Enter 4 or less.", "Fill in this field.", "Choose at most 2."]);
  expect(document.activeElement).toBe(field("name"));
  expect(field("name").getAttribute("aria-invalid")).toBe("true");
  expect(replies).toEqual([]);

  type("name", "Ada");
  type(/Mail/, "");
  type(/cups/, "2");
  type(/size/, "l");
  fireEvent.click(field("Honey"));
  answer();
  await waitFor(() => expect(replies).toHaveLength(1));
  expect(replies[0]).toEqual({ decision: "allow", result: { name: "Ada", cups: 2, hot: true, size: "l", extras: ["m", "l"] } });
  expect(screen.queryAllByRole("alert")).toHaveLength(0);
});

test("what no form can ask is shown whole and answered as an object of JSON", async () => {
  const { replies, answer } = await asked({ type: "object", properties: { at: { type: "object", title: "Where\u202e" } } });
  expect(screen.getByLabelText("What is asked for").textContent).toContain('"Where\\u202e"');
  for (const wrong of ["", "[1]", "null", "{"]) {
    type(/Answer as JSON/, wrong);
    answer();
    expect(screen.getByRole("alert").textContent).toBe("This is not a JSON object.");
  }
  type(/Answer as JSON/, '{"at":{"x":1}}');
  answer();
  await waitFor(() => expect(replies).toEqual([{ decision: "allow", result: { at: { x: 1 } } }]));
});

test("a question without fields is agreed to or declined", async () => {
  const { replies, answer } = await asked(undefined);
  answer();
  await waitFor(() => expect(replies).toEqual([{ decision: "allow", result: {} }]));
  fireEvent.click(screen.getByRole("button", { name: "Decline" }));
  await waitFor(() => expect(replies).toHaveLength(2));
  expect(replies[1]).toEqual({ decision: "deny" });
});
