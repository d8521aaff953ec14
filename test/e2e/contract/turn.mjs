// Runs one turn through an AI SDK provider and prints what came of it as JSON.
// Arguments: the module's entry, the program to drive, the prompt.
const [, , entry, codexPath, prompt] = process.argv;
const { createCodexAppServer } = await import(entry);
const env = { PATH: process.env.PATH, HOME: process.env.HOME, THOLE_HOME: process.env.THOLE_HOME };
const provider = createCodexAppServer({ defaultSettings: { codexPath, env } });
const { stream } = await provider('test/script').doStream({
  prompt: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
});
const out = { text: '', deltas: 0, finish: null, errors: [] };
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
