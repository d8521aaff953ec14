/**
 * blocks cuts markdown at blank lines outside of code fences, lists and tables stay whole enough for a parser. While an
 * answer grows only its last block changes, so only that one is parsed again.
 */
export function blocks(text: string): string[] {
  const out: string[] = [];
  let current: string[] = [];
  let fence: string | undefined;
  const flush = () => {
    if (current.some((line) => line.trim())) out.push(current.join("\n"));
    current = [];
  };
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
    } else if (mark) fence = mark;
    if (!fence && !mark && line.trim() === "" && !continues(current, lines.slice(index + 1, index + 3))) flush();
    else current.push(line);
  });
  flush();
  return out;
}

// A loose list goes on after a blank line: cutting it there would restart its numbers. Reference links need their text.
const item = /^\s*([-*+]|\d+[.)])\s/;
function continues(current: string[], next: string[]): boolean {
  const following = next.find((line) => line.trim() !== "");
  if (following === undefined) return false;
  const inList = current.some((line) => item.test(line));
  return inList && (item.test(following) || /^\s{2,}\S/.test(following));
}
