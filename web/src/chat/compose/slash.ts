import { rank } from "../../keys/rank";

/** Command is what a message that begins with a slash does instead of being sent. */
export interface Command {
  name: string;
  about: string;
  /** What comes after the name; without it the command takes nothing. */
  argument?: { name: string; required: boolean; choices?: { value: string; text: string }[] };
  /** Why it cannot be used now. */
  blocked?: string;
  /** own: a command of the agent's, which is sent to it as it is. */
  own?: boolean;
  /** insert takes the place of the name, where an agent is asked in another way. */
  insert?: string;
  run: (argument: string) => void;
}

/** Suggestion is a line of the list over the field: what it says, and what is put into the text for it. */
export interface Suggestion {
  id: string;
  text: string;
  note?: string;
  /** The text that takes the place of `from` to `to`. */
  insert: string;
  from: number;
  to: number;
  /** run: choosing it is enough. */
  run?: () => void;
}

/** suggestCommands are the commands that may be meant by what is being typed at the beginning of the text. */
export function suggestCommands(text: string, caret: number, commands: Command[]): Suggestion[] {
  const typed = /^\/(\S*)$/.exec(text.slice(0, caret));
  if (typed && !/^\S/.test(text.slice(caret)))
    return ranked(commands, typed[1]!, (it) => it.name).map((it) => ({
      id: it.name,
      text: `/${it.name}${it.argument ? ` ${it.argument.name}` : ""}`,
      note: it.blocked ?? it.about,
      insert: it.insert ?? `/${it.name} `,
      from: 0,
      to: caret,
      run: it.argument || it.own ? undefined : () => it.run(""),
    }));
  const begun = /^\/(\S+) +([^\n]*)$/.exec(text.slice(0, caret));
  const command = commands.find((it) => it.name === begun?.[1]);
  if (!begun || !command?.argument?.choices || caret !== text.length) return [];
  return ranked(command.argument.choices, begun[2]!.trim(), (it) => `${it.value} ${it.text}`).map((it) => ({
    id: it.value,
    text: it.text,
    note: it.value !== it.text ? it.value : undefined,
    insert: `/${command.name} ${it.value}`,
    from: 0,
    to: caret,
    run: () => command.run(it.value),
  }));
}

function ranked<T>(items: T[], asked: string, name: (item: T) => string): T[] {
  if (!asked) return items;
  return items
    .flatMap((item) => {
      const cost = rank(asked, name(item));
      return cost === undefined ? [] : [{ item, cost }];
    })
    .sort((a, b) => a.cost - b.cost)
    .map(({ item }) => item);
}

/**
 * commandIn finds the command that a whole text is. A path, an unknown name or a text after a command that takes none is a
 * message like any other, and so is everything after a space.
 */
export function commandIn(text: string, commands: Command[]): { command: Command; argument: string } | undefined {
  const found = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  const command = found && commands.find((it) => it.name === found[1] && !it.own);
  if (!command) return undefined;
  const argument = (found[2] ?? "").trim();
  return argument && !command.argument ? undefined : { command, argument };
}
