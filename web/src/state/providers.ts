import { get } from "../api/http";
import type { Provider, Providers } from "../api/types";
import { en } from "../i18n/en";
import { t, type Key } from "../i18n";
import { prefs } from "./prefs";
import { Store } from "./store";

export const providers = new Store<Providers | undefined>(undefined);

export async function loadProviders(): Promise<void> {
  providers.set(await get<Providers>("/providers"));
}

/** titleOf is an agent's name for people: its own, but for the scripted one, which is ours. */
export const titleOf = (it: { name: string; title?: string }): string => (`name.${it.name}` in en ? t(`name.${it.name}` as Key) : it.title || it.name);

export const providerNamed = (name: string | undefined): Provider | undefined => providers.get()?.items.find((it) => it.name === name);

/** choice is what a new chat starts with: what was used last if it still works, else what the server suggests. */
export function choice(list: Providers | undefined): Provider | undefined {
  if (!list) return undefined;
  const usable = list.items.filter((it) => it.available);
  return usable.find((it) => it.name === prefs.get().provider) ?? usable.find((it) => it.name === list.default) ?? usable[0];
}

/** can reports whether an ability of a provider is proven; only proven ones are offered. */
export const can = (provider: Provider | undefined, ability: keyof Provider["capabilities"]): boolean => provider?.capabilities[ability] === "validated";

export function noteOf(provider: Provider | undefined, ability: string): string | undefined {
  return provider?.capabilities.notes?.[ability];
}
