import { useMemo } from "react";
import { t } from "../../i18n";
import { compact, fork, rename } from "../../keys/deeds";
import { opened } from "../../keys/open";
import { showPanel } from "../../state/layout";
import { can, titleOf } from "../../state/providers";
import { go } from "../../state/route";
import { useStore } from "../../state/store";
import { say, tried } from "../../ui/toast";
import { useConversation, useSide } from "../context";
import { useSelection } from "../settings-bar";
import type { Command } from "./slash";
import { skillCommands, useSkills } from "./use-skills";

/** useCommands are what a slash offers in this chat now. Those that need something that is not there say so. */
export function useCommands(): Command[] {
  const conversation = useConversation();
  const session = useSide((side) => side.session);
  const [{ provider, model }, select] = useSelection();
  const [id, running, begun] = [session?.id, session?.active_run_id !== undefined, (session?.runs ?? 0) > 0];
  const models = provider?.models;
  const canFork = can(provider, "fork");
  const skills = useSkills(provider?.name, useStore(conversation.box, (box) => box.text.startsWith("/")));
  return useMemo(() => {
    const early = begun ? undefined : t("slash.early");
    const command = (name: string, run: Command["run"], rest: Partial<Command> = {}): Command => ({ name, about: t(`slash.${name}` as never), run, ...rest });
    const choices = [{ value: "default", text: t("model.default") }, ...(models ?? []).map((it) => ({ value: it.id, text: it.title || it.id }))];
    const setModel = (name: string) => {
      const known = models?.find((it) => [it.id, it.title].some((text) => text?.toLowerCase() === name.toLowerCase()));
      if (!known && name !== "default") return say(t("slash.noModel", { name }));
      select({ model: known?.id ?? "" });
      say(t("slash.modelSet", { name: known ? known.title || known.id : t("model.default") }));
    };
    return [
      command("compact", () => void compact(conversation), { blocked: early ?? (running ? t("slash.busy") : undefined) }),
      command("stop", () => void tried(conversation.stop()), { blocked: running ? undefined : t("slash.idle") }),
      ...(choices.length > 1 ? [command("model", setModel, { argument: { name: t("slash.model.name"), required: true, choices } })] : []),
      command("fork", () => id && void fork(id), { blocked: early ?? (canFork ? undefined : t("slash.noFork")) }),
      command("rename", (name) => (name ? void rename(conversation, name.split("\n")[0]!) : opened.set("rename")), {
        argument: { name: t("slash.rename.name"), required: false },
        blocked: id ? undefined : t("slash.early"),
      }),
      command("diff", () => showPanel("changes"), { blocked: early }),
      command("new", () => go({ page: "new" })),
      ...skillCommands(provider?.name ?? "", skills, provider ? titleOf(provider) : ""),
    ];
  }, [conversation, id, running, begun, models, model, canFork, skills, provider]);
}
