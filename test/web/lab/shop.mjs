// An MCP server whose one tool asks the person for an order and returns what they answered.
import { createInterface } from "node:readline";

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const properties = {
  name: { type: "string", title: "Name on the cup", minLength: 2 },
  mail: { type: "string", format: "email", title: "Mail" },
  cups: { type: "integer", title: "Cups", minimum: 1, maximum: 4 },
  hot: { type: "boolean", title: "Hot" },
  size: { type: "string", title: "Size", enum: ["small", "large"] },
  extras: { type: "array", title: "Extras", items: { type: "string", enum: ["milk", "honey", "lemon"] }, minItems: 1 },
};
const requestedSchema = { type: "object", properties, required: ["name", "cups", "size"] };
let call;

createInterface({ input: process.stdin }).on("line", (text) => {
  const { id, method, params, result, error } = JSON.parse(text);
  if (method === "initialize") say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "shop", version: "1" } } });
  else if (method === "tools/list") say({ id, result: { tools: [{ name: "order", description: "takes an order", inputSchema: { type: "object", properties: {} } }] } });
  else if (method === "tools/call") {
    call = id;
    say({ id: "ask", method: "elicitation/create", params: { message: "What shall it be?", requestedSchema } });
  } else if (id === "ask") say({ id: call, result: { content: [{ type: "text", text: `ordered ${JSON.stringify(result?.content ?? error ?? result?.action)}` }] } });
});
