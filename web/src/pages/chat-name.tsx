import { sessions, titleOf } from "../state/sessions";
import { useStore } from "../state/store";
import { Link } from "../ui/link";

/** ChatName leads to a chat, by its title where the list of chats has it, else by its id: usage outlives chats. */
export function ChatName({ id }: { id: string }) {
  const session = useStore(sessions, (it) => it.items.find((item) => item.id === id));
  return (
    <Link to={{ page: "chat", id }} className="hover:underline">
      {titleOf(session) || <span className="font-mono text-[12px]">{id}</span>}
    </Link>
  );
}
