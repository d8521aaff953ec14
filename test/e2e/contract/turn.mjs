// Runs one turn through an AI SDK provider and prints what came of it as JSON.
// Arguments: the module's entry, the program to drive, and as JSON the model, the prompt, an
// image file and how it is given, the schema of the answer, and whether there is a tool.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , entry, codexPath, wish] = process.argv;
const { model, prompt, image, as, schema, tool } = JSON.parse(wish);
const { createCodexAppServer, createSdkMcpServer } = await import(entry);
const env = { ...process.env };
// A tool of this program, as the provider offers it to agents: a server of its own process.
const price = {
  name: 'price',
  description: 'what something costs',
  inputSchema: { type: 'object', properties: { of: { type: 'string' } }, required: ['of'] },
  execute: async ({ of }) => `${of} costs two coins, says process ${process.pid}`,
};
const mcpServers = tool ? { shop: createSdkMcpServer({ name: 'shop', tools: [price] }) } : undefined;
const provider = createCodexAppServer({ defaultSettings: { codexPath, env, ...(mcpServers ? { mcpServers } : {}) } });
const content = [{ type: 'text', text: prompt }];
if (image) {
  const bytes = readFileSync(image);
  const data = {
    bytes: () => new Uint8Array(bytes),
    url: () => `data:image/png;base64,${bytes.toString('base64')}`,
    file: () => pathToFileURL(image),
  }[as]();
  content.push({ type: 'file', mediaType: 'image/png', data });
}
const { stream } = await provider(model).doStream({
  prompt: [{ role: 'user', content }],
  // What generateObject asks a model for.
  ...(schema ? { responseFormat: { type: 'json', schema } } : {}),
});
const out = { text: '', deltas: 0, finish: null, errors: [], pid: process.pid };
for await (const part of stream) {
  if (part.type === 'text-delta') {
    out.text += part.delta;
    out.deltas++;
  }
  if (part.type === 'finish') out.finish = part.finishReason?.unified ?? part.finishReason;
  if (part.type === 'error') out.errors.push(String(part.error));
}
await provider.close?.();
console.log(JSON.stringify(out));
process.exit(0);
