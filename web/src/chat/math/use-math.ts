import { Store, useStore } from "../../state/store";

export type Math = typeof import("./formula");

// The renderer of formulas and its fonts are large, and most chats have none.
const loaded = new Store<Math | undefined>(undefined);
let asked = false;

/** useMath is the renderer of formulas once it is here, and nothing where none are wanted or it cannot be had. */
export function useMath(wanted: boolean): Math | undefined {
  const math = useStore(loaded);
  if (wanted && !asked) {
    asked = true;
    import("./formula").then(loaded.set, () => (asked = false));
  }
  return wanted ? math : undefined;
}
