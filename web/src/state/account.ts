import { get, onSignedOut, post, Problem } from "../api/http";
import { dropProof, keepProof } from "../api/proof";
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

/** logIn takes an API token, or the code of a login link. */
export async function logIn(secret: string): Promise<void> {
  const account = await post<Account>("/auth/login", secret.startsWith("thole_") ? { token: secret } : { code: secret.replace(/^.*#code=/, "") });
  keepProof(account.proof ?? "");
  await whoAmI();
}

/** logOut ends this login, and leads to the provider of logins where one proved it, which asks whether to end its own. */
export async function logOut(): Promise<void> {
  const { logout_url } = await get<Account>("/auth/session");
  await post("/auth/logout");
  dropProof();
  if (logout_url) return location.assign(logout_url);
  login.set({ state: "out" });
}
