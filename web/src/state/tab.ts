import { useEffect } from "react";
import { inbox, openCount } from "./inbox";
import { Store } from "./store";

/** Tab is what the browser shows of this page besides itself: a title, and whether something runs. */
interface Tab {
  title: string;
  running: boolean;
}

const tab = new Store<Tab>({ title: "", running: false });

/** useTab names the tab after what the page shows now. */
export function useTab(title: string, running = false): void {
  useEffect(() => tab.set({ title, running }), [title, running]);
}

/** titleFor counts what waits first: a narrow tab shows only the beginning. */
export function titleFor({ title, running }: Tab, open: number): string {
  const name = title ? `${[...title].slice(0, 60).join("")} · thole` : "thole";
  return [open > 0 && `(${open})`, running && "●", name].filter(Boolean).join(" ");
}

/** iconFor is the icon with a dot in the colour of what matters most. */
const iconFor = (running: boolean, open: number): string => (open > 0 ? "/icon-ask.svg" : running ? "/icon-run.svg" : "/icon.svg");

/** followTab keeps title and icon in step with the page and with what waits in all chats. */
export function followTab(): () => void {
  const apply = () => {
    const open = openCount(inbox.get());
    document.title = titleFor(tab.get(), open);
    const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    const icon = iconFor(tab.get().running, open);
    if (link && link.getAttribute("href") !== icon) link.href = icon;
  };
  apply();
  const undo = [tab.subscribe(apply), inbox.subscribe(apply)];
  return () => {
    for (const it of undo) it();
  };
}
