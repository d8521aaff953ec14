import { get, onSignedOut, post, Problem } from "../api/http";
import type { Account } from "../api/types";
import { Store } from "./store";

export type Login = { state: "asking" } | { state: "in"; account: Account } | { state: "out" } | { state: "failed"; problem: Problem };

export const login = new Store<Login>({ state: "asking" });

export async function whoAmI(): Promise<void> {
  try {
    login.set({ state: "in", account: await get<Account>("/auth/session") });
  } catch (error) {
    const problem = error as Problem;
    login.set(problem.status === 401 ? { state: "out" } : { state: "failed", problem });
  }
}

onSignedOut(() => {
  if (login.get().state === "in") login.set({ state: "out" });
});

export async function logIn(token: string): Promise<void> {
  await post("/auth/login", { token });
  await whoAmI();
}

export async function logOut(): Promise<void> {
  await post("/auth/logout");
  login.set({ state: "out" });
}
