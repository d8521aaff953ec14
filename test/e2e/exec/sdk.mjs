// Drives thole through the official Codex SDK, which starts it as if it were codex, and
// prints what came of it as JSON. Arguments: the module's entry, the program, options.
const [, , entry, program, raw] = process.argv;
const { Codex } = await import(entry);
const o = JSON.parse(raw);
const codex = new Codex({ codexPathOverride: program, env: { PATH: process.env.PATH, HOME: process.env.HOME, THOLE_HOME: process.env.THOLE_HOME } });
const options = { model: o.model, sandboxMode: o.sandbox, workingDirectory: o.dir, skipGitRepoCheck: true, ...o.options };
const thread = o.resume ? codex.resumeThread(o.resume, options) : codex.startThread(options);
const out = { turns: [] };
for (const input of o.inputs) {
  const turn = { events: [], items: [], final: '', usage: null, error: null };
  out.turns.push(turn);
  try {
    const { events } = await thread.runStreamed(input, { outputSchema: o.schema });
    for await (const e of events) {
      turn.events.push(e.type);
      if (e.type === 'item.completed') {
        turn.items.push(e.item);
        if (e.item.type === 'agent_message') turn.final = e.item.text;
      }
      if (e.type === 'turn.completed') turn.usage = e.usage;
      if (e.type === 'turn.failed') turn.error = e.error.message;
    }
  } catch (e) {
    turn.error = turn.error ?? String(e);
  }
}
out.thread = thread.id;
console.log(JSON.stringify(out));
