import { useEffect, useState } from "react";
import { get } from "../../api/http";
import type { OwnConfig } from "../../api/types";
import { t } from "../../i18n";
import type { Command } from "./slash";

/** How each agent is asked for a skill by name: what it takes in a message. */
const asked: Record<string, (name: string) => string> = {
  claude: (name) => `/${name} `,
  codex: (name) => `$${name} `,
  opencode: (name) => `Use the skill ${name}: `,
};

/** skillCommands are an agent's own skills as lines of the list over the field. */
export const skillCommands = (agent: string, skills: string[], title: string): Command[] =>
  skills.map((name) => ({ name, about: t("slash.skill", { agent: title }), own: true, insert: asked[agent]?.(name), run: () => {} }));

const kept = new Map<string, Promise<string[]>>();

function skillsOf(agent: string): Promise<string[]> {
  const known = kept.get(agent);
  if (known) return known;
  const loading = get<OwnConfig>(`/providers/${agent}/config`).then(
    (it) => it.skills,
    () => [], // it has none for this user
  );
  kept.set(agent, loading);
  return loading;
}

/** useSkills are the skills that the user has written for an agent, once they are wanted. */
export function useSkills(agent: string | undefined, wanted: boolean): string[] {
  const [found, setFound] = useState<{ agent: string; skills: string[] }>();
  useEffect(() => {
    if (!wanted || !agent || !asked[agent]) return;
    let over = false;
    void skillsOf(agent).then((skills) => over || setFound({ agent, skills }));
    return () => {
      over = true;
    };
  }, [agent, wanted]);
  return found && found.agent === agent ? found.skills : none;
}

const none: string[] = [];
