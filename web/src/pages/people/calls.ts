import { useCallback, useEffect, useState } from "react";
import { post, type Problem } from "../../api/http";

// Methods that manage users answer with what the command line shows (internal/identity/describe.go).

export interface User {
  id: string;
  login: string;
  name: string;
  email?: string;
  kind: "human" | "service" | "system";
  state: string;
  created_at: string;
  /** Of one who was just invited, or may choose another password; shown once. */
  url?: string;
}

export interface Department {
  id: string;
  parent?: string;
  name: string;
  members?: string[];
}

export interface Grant {
  id: string;
  to: "user" | "department";
  to_id: string;
  role: Role;
  on: Place;
  on_id?: string;
  source?: string;
  created_at: string;
  expires_at?: string;
}

export type Role = "platform_admin" | "app_admin" | "project_admin" | "member" | "viewer";
export type Place = "platform" | "app" | "project" | "user" | "department";

/** placesOf are where each role means something, as the server's table of rights has it. */
export const placesOf: Record<Role, readonly Place[]> = {
  viewer: ["platform", "department", "user", "project", "app"],
  member: ["project", "app"],
  project_admin: ["project"],
  app_admin: ["app"],
  platform_admin: ["platform"],
};

export const call = <T>(method: string, params: Record<string, unknown> = {}): Promise<T> => post<T>("/methods", { method: `thole/${method}`, params });

const pageSize = 1000;

async function everyUser(): Promise<User[]> {
  const all: User[] = [];
  for (;;) {
    const some = await call<User[]>("user/list", { after: all.at(-1)?.login, limit: pageSize });
    all.push(...some);
    if (some.length < pageSize) return all;
  }
}

export interface Everybody {
  users: User[];
  departments: Department[];
  grants: Grant[];
}

export interface Asked {
  all?: Everybody;
  problem?: Problem;
  reload: () => void;
}

/** useEverybody reads users, departments and grants, and again when one of them was changed from here. */
export function useEverybody(): Asked {
  const [state, setState] = useState<Omit<Asked, "reload">>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let over = false;
    Promise.all([everyUser(), call<Department[]>("department/list"), call<Grant[]>("grant/list")]).then(
      ([users, departments, grants]) => !over && setState({ all: { users, departments, grants } }),
      (problem: Problem) => !over && setState((old) => ({ ...old, problem })),
    );
    return () => void (over = true);
  }, [turn]);
  return { ...state, reload: useCallback(() => setTurn((it) => it + 1), []) };
}

/** nameOf is what people call a user or a department. */
export const nameOf = ({ users, departments }: Everybody, id: string): string =>
  users.find((it) => it.id === id)?.login ?? departments.find((it) => it.id === id)?.name ?? id;
