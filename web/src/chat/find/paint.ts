import type { Spot } from "./state";

// Hits are marked by the browser's own highlights, which change nothing in the document: React does not notice them.

const registry = (): HighlightRegistry | undefined => (typeof CSS === "undefined" ? undefined : CSS.highlights);

/** rangesIn are the places of a text below an element, also where it runs over several elements. */
export function rangesIn(root: Element, text: string): Range[] {
  const wanted = text.toLowerCase();
  const nodes: { node: Text; from: number }[] = [];
  let whole = "";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => {
    const parent = node.parentElement;
    // The title of an open part repeats what is inside; what is for a screen reader only cannot be marked.
    return parent?.closest("[aria-expanded=true],.sr-only,.select-none,style") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
  });
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    nodes.push({ node, from: whole.length });
    whole += node.data;
  }
  const lower = whole.toLowerCase();
  if (lower.length !== whole.length || !wanted.trim()) return []; // a script whose small letters are longer: places would be wrong
  const out: Range[] = [];
  let first = 0;
  const place = (at: number) => {
    while (first + 1 < nodes.length && nodes[first + 1]!.from <= at) first++;
    return nodes[first]!;
  };
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
    const range = document.createRange();
    const start = place(at);
    range.setStart(start.node, at - start.from);
    const end = place(at + wanted.length - 1);
    range.setEnd(end.node, at + wanted.length - end.from);
    out.push(range);
  }
  return out;
}

/** paint marks every hit that is drawn, and returns the one that is meant now if it is among them. */
export function paint(list: Element, text: string, now: Spot | undefined): Range | undefined {
  const all: Range[] = [];
  let current: Range | undefined;
  for (const row of list.querySelectorAll<HTMLElement>("[data-row]")) {
    const ranges = rangesIn(row, text);
    if (now && row.dataset.row === now.key) current = ranges[Math.min(now.nth, ranges.length - 1)];
    all.push(...ranges);
  }
  mark(all, current);
  return current;
}

export function mark(all: Range[], current: Range | undefined): void {
  if (!registry()) return;
  const others = new Highlight();
  for (const range of all) if (range !== current) others.add(range); // one by one: a call takes only so many
  registry()?.set("found", others);
  registry()?.set("found-now", current ? new Highlight(current) : new Highlight());
}

export function wipe(): void {
  registry()?.delete("found");
  registry()?.delete("found-now");
}

/** reveal scrolls everything around a place so that it is seen. */
export function reveal(range: Range, top: Element): void {
  for (let box: Element | null = range.startContainer.parentElement; box; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (/auto|scroll/.test(style.overflowY + style.overflowX)) {
      const [at, frame] = [range.getBoundingClientRect(), box.getBoundingClientRect()];
      if (at.top < frame.top + 8 || at.bottom > frame.bottom - 8) box.scrollTop += at.top - frame.top - frame.height / 2;
      if (at.left < frame.left || at.right > frame.right) box.scrollLeft += at.left - frame.left - frame.width / 2;
    }
    if (box === top) return;
  }
}
