/** rank says how well a text answers a query: undefined when it does not, else less is better. All words must be there, in any order. */
export function rank(query: string, title: string, words = ""): number | undefined {
  const asked = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [name, rest] = [title.toLowerCase(), words.toLowerCase()];
  let sum = 0;
  for (const word of asked) {
    const cost = costOf(word, name) ?? (rest.split(" ").some((it) => it.startsWith(word)) ? 30 : undefined);
    if (cost === undefined) return undefined;
    sum += cost;
  }
  return sum;
}

const isStart = (text: string, at: number): boolean => at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);

// A word at the beginning is best, then one at the beginning of a word, then anywhere, then letters in order.
function costOf(word: string, text: string): number | undefined {
  if (text.startsWith(word)) return 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) if (isStart(text, at)) return 5;
  if (text.includes(word)) return 10;
  if (word.length < 2) return undefined;
  let at = -1;
  let first = -1;
  for (const letter of word) {
    at = text.indexOf(letter, at + 1);
    if (at < 0) return undefined;
    if (first < 0) first = at;
  }
  return isStart(text, first) && at - first < word.length * 4 ? 40 + (at - first) : undefined;
}
