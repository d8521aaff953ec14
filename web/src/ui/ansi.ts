/** Style is how a run of text looks; a colour is the name of one of the sixteen, or rgb. */
export interface Style {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Run {
  text: string;
  style?: Style;
}

const widest = 2000; // columns that a program may move to by itself
const tallest = 20_000;

interface Cell {
  char: string;
  style?: Style;
}

// A control sequence; a string for the terminal itself (title, link, image); any other escape; a single control character.
const control =
  // eslint-disable-next-line no-control-regex
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[\s\S]*?(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?|[\x00-\x1f\x7f-\x9f]/g;

/**
 * screen draws what a program wrote as a terminal would have left it: colours stay, a line that was written over shows its
 * last state, and everything else that is not text is gone. It returns lines of runs, never markup.
 */
export function screen(text: string): Run[][] {
  const rows: Cell[][] = [[]];
  let row = 0;
  let at = 0;
  let style: Style | undefined;
  const line = () => (rows[row] ??= []);
  const down = (n: number) => {
    row = Math.min(row + n, tallest);
    while (rows.length <= row) rows.push([]);
  };
  const write = (words: string) => {
    const cells = line();
    while (cells.length < at) cells.push({ char: " " });
    for (const char of words) cells[at++] = { char, style };
  };
  const move = (params: string, kind: string) => {
    const n = Math.max(1, Number.parseInt(params, 10) || 1);
    if (kind === "m") style = graphics(style, params);
    else if (kind === "K") erase(line(), at, params);
    else if (kind === "C") at = Math.min(at + n, widest);
    else if (kind === "D") at = Math.max(0, at - n);
    else if (kind === "G") at = Math.min(n - 1, widest);
    else if (kind === "A" || kind === "F") row = Math.max(0, row - n);
    else if (kind === "B" || kind === "E") row = Math.min(rows.length - 1, row + n);
    if (kind === "E" || kind === "F") at = 0;
  };
  let from = 0;
  for (const found of text.matchAll(control)) {
    if (found.index > from) write(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[2]) move(found[1]!, found[2]);
    else if (found[0] === "\n") {
      down(1);
      at = 0;
    } else if (found[0] === "\r") at = 0;
    else if (found[0] === "\b") at = Math.max(0, at - 1);
    else if (found[0] === "\t") write(" ".repeat(8 - (at % 8)));
  }
  write(text.slice(from));
  return rows.map(runs);
}

function erase(cells: Cell[], at: number, params: string): void {
  if (params === "2") cells.length = 0;
  else if (params === "1") for (let i = 0; i <= Math.min(at, cells.length - 1); i++) cells[i] = { char: " " };
  else cells.length = Math.min(cells.length, at);
}

function runs(cells: Cell[]): Run[] {
  const out: Run[] = [];
  for (const { char, style } of cells) {
    const last = out.at(-1);
    if (last && last.style === style) last.text += char;
    else out.push({ text: char, style });
  }
  return out;
}

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const colour = (n: number): string => (n < 8 ? names[n]! : `bright-${names[n - 8]}`);

function indexed(n: number): string | undefined {
  if (!(n >= 0 && n <= 255)) return undefined;
  if (n < 16) return colour(n);
  const level = (v: number) => (v ? 55 + 40 * v : 0);
  if (n >= 232) return `rgb(${[0, 0, 0].fill(8 + 10 * (n - 232)).join(" ")})`;
  const cube = n - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}

/** graphics is the style after a sequence; the same style is the same object. */
function graphics(before: Style | undefined, params: string): Style | undefined {
  const codes = params.split(/[;:]/).map((it) => Number.parseInt(it, 10) || 0);
  let style: Style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const n = codes[i]!;
    if (n === 0) style = {};
    else if (n === 1) style.bold = true;
    else if (n === 2) style.dim = true;
    else if (n === 3) style.italic = true;
    else if (n === 4) style.underline = true;
    else if (n === 7) style.inverse = true;
    else if (n === 9) style.strike = true;
    else if (n === 22) style = { ...style, bold: undefined, dim: undefined };
    else if (n === 23) style.italic = undefined;
    else if (n === 24) style.underline = undefined;
    else if (n === 27) style.inverse = undefined;
    else if (n === 29) style.strike = undefined;
    else if (n >= 30 && n <= 37) style.fg = colour(n - 30);
    else if (n >= 90 && n <= 97) style.fg = colour(n - 82);
    else if (n === 39) style.fg = undefined;
    else if (n >= 40 && n <= 47) style.bg = colour(n - 40);
    else if (n >= 100 && n <= 107) style.bg = colour(n - 92);
    else if (n === 49) style.bg = undefined;
    else if (n === 38 || n === 48) {
      const rgb = codes.slice(i + 2, i + 5).filter((it) => it >= 0 && it <= 255);
      const found = codes[i + 1] === 5 ? indexed(codes[i + 2] ?? -1) : codes[i + 1] === 2 && rgb.length === 3 ? `rgb(${rgb.join(" ")})` : undefined;
      style[n === 38 ? "fg" : "bg"] = found;
      i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
    }
  }
  return Object.values(style).some((it) => it !== undefined) ? style : undefined;
}
