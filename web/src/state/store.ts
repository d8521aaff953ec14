import { useCallback, useSyncExternalStore } from "react";

/** Store is one value that components can watch. Values are replaced, never changed in place. */
export class Store<T> {
  private listeners = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set = (next: T | ((value: T) => T)): void => {
    const value = typeof next === "function" ? (next as (value: T) => T)(this.value) : next;
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of this.listeners) listener();
  };

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

const whole = <T>(value: T): unknown => value;

/** useStore watches a store, or what `select` takes from it; select must return the same value for the same state. */
export function useStore<T>(store: Store<T>): T;
export function useStore<T, S>(store: Store<T>, select: (value: T) => S): S;
export function useStore<T>(store: Store<T>, select: (value: T) => unknown = whole): unknown {
  const read = useCallback(() => select(store.get()), [store, select]);
  return useSyncExternalStore(store.subscribe, read);
}
