import { type ComponentType, useEffect, useState, useSyncExternalStore } from "react";
import { ChatView } from "./chat/chat-view";
import { ConversationContext, useSide } from "./chat/context";
import { ProfileSwitch } from "./chat/profile-switch";
import { online } from "./events/client";
import { History } from "./history/history";
import { RenameField } from "./history/rename";
import { t, useLanguage } from "./i18n";
import { Keys } from "./keys/keys";
import { type Conversation, conversationOf } from "./state/conversation";
import { updated } from "./state/installed";
import { layout, medium as mediumWidth, toggleChats, toggleDetails, wide as wideWidth } from "./state/layout";
import { prefs } from "./state/prefs";
import { Sharing } from "./share/open-dialog";
import { sharing } from "./share/open";
import { go, type Route, route } from "./state/route";
import { loadSessions, titleOf } from "./state/sessions";
import { placeOf } from "./state/source";
import { useStore } from "./state/store";
import { useTab } from "./state/tab";
import { Boundary } from "./ui/boundary";
import { IconButton, iconLook } from "./ui/controls";
import { Drawer } from "./ui/dialog";
import { GearIcon, Mark, MenuIcon, PanelIcon, PencilIcon, PlusIcon, ShareIcon, Spinner } from "./ui/icons";
import { later } from "./ui/later";
import { Link } from "./ui/link";
import { Toast } from "./ui/toast";

// What stands around the chat, and pages that few visits need, come in files of their own.
const Panel = later(() => import("./panels/panel"));
const pages: Partial<Record<Route["page"], ComponentType>> = {
  usage: later(() => import("./pages/usage")),
  connections: later(() => import("./pages/connections")),
  inbox: later(() => import("./pages/inbox")),
  users: later(() => import("./pages/people/people")),
  settings: later(() => import("./settings/settings")),
};

export function App() {
  useLanguage();
  const here = useStore(route);
  // Without an address the newest chat opens, or a new one when there is none.
  useEffect(() => {
    if (here.page !== "start") return;
    loadSessions()
      .then((items) => go(items[0] ? { page: "chat", id: items[0].id } : { page: "new" }, true))
      .catch(() => go({ page: "new" }, true));
  }, [here]);
  return (
    <>
      <a href="#chat" className="sr-only z-50 rounded-lg bg-surface px-3 py-2 focus:not-sr-only focus:absolute focus:left-2 focus:top-2">
        {t("app.skip")}
      </a>
      {here.page === "start" ? (
        <p className="flex h-full items-center justify-center gap-2 text-muted">
          <Spinner /> {t("app.loading")}
        </p>
      ) : (
        <Workbench chatID={here.page === "chat" ? here.id : undefined} page={pages[here.page]} />
      )}
      <Toast />
    </>
  );
}

/** A new chat has its id from the start, so that its first message does not rebuild the page. */
function useConversationOf(chatID: string | undefined): Conversation {
  const [now, setNow] = useState(() => conversationOf(chatID));
  const fits = chatID === undefined ? now.isDraft : now.id === chatID;
  const current = fits ? now : conversationOf(chatID);
  if (!fits) setNow(current);
  useEffect(() => current.open(), [current]);
  return current;
}

function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}

/** Workbench is a chat with what stands around it, or in the chat's place another page. */
function Workbench({ chatID, page: Page }: { chatID?: string; page?: ComponentType }) {
  const conversation = useConversationOf(chatID);
  const wide = useMedia(`(min-width: ${wideWidth})`);
  const medium = useMedia(`(min-width: ${mediumWidth})`);
  const panel = useStore(prefs, (it) => it.panel);
  const roomy = useStore(prefs, (it) => it.tab === "changes"); // lines of code need more room than words
  const chats = useStore(prefs, (it) => it.chats !== false);
  const over = useStore(layout);
  const closeChats = () => layout.set((old) => ({ ...old, chats: false }));
  const closeDetails = () => layout.set((old) => ({ ...old, details: false }));
  return (
    <ConversationContext value={conversation}>
      <div className="flex h-full flex-col">
        <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-surface px-2 md:px-3">
          {!(medium && chats) && (
            <IconButton label={t("history.open")} onClick={toggleChats}>
              <MenuIcon />
            </IconButton>
          )}
          <a
            href="/"
            aria-label="thole"
            className="flex items-center gap-2 rounded-lg px-1 font-semibold tracking-tight"
            onClick={(event) => {
              event.preventDefault();
              go({ page: "start" });
            }}
          >
            <Mark /> <span className="hidden sm:inline">thole</span>
          </a>
          {!Page && <Title />}
          {!Page && <ProfileSwitch />}
          <div className="flex flex-1 items-center justify-end gap-0.5">
            {!medium && (
              <IconButton label={t("history.new")} onClick={() => go({ page: "new" })}>
                <PlusIcon />
              </IconButton>
            )}
            <Link to={{ page: "settings" }} label={t("menu.settings")} className={iconLook}>
              <GearIcon />
            </Link>
            {!Page && <PanelToggle open={wide ? panel : over.details} onToggle={toggleDetails} />}
          </div>
        </header>
        <Offline />
        <Updated />
        <div className="flex min-h-0 flex-1">
          {medium && chats && (
            <aside aria-label={t("history.title")} className="w-64 shrink-0 border-r border-line bg-surface">
              <History />
            </aside>
          )}
          <main id="chat" tabIndex={-1} className="flex min-w-0 flex-1 flex-col outline-none" key={Page ? "page" : conversation.id}>
            <Boundary of="page" about={Page ?? conversation}>
              {Page ? <Page /> : <ChatView />}
            </Boundary>
          </main>
          {wide && panel && !Page && (
            <aside aria-label={t("panel.label")} className={`${roomy ? "w-[min(48rem,46vw)]" : "w-[22rem]"} shrink-0 border-l border-line bg-surface`}>
              <Boundary of="part" about={conversation}>
                <Panel />
              </Boundary>
            </aside>
          )}
        </div>
      </div>
      {!medium && (
        <Drawer side="left" open={over.chats} label={t("history.title")} onClose={closeChats}>
          <History onPick={closeChats} />
        </Drawer>
      )}
      {!wide && !Page && (
        <Drawer side="right" whole={roomy} open={over.details} label={t("panel.label")} onClose={closeDetails}>
          <Boundary of="part" about={conversation}>
            <Panel onLeave={closeDetails} />
          </Boundary>
        </Drawer>
      )}
      <Keys />
      <Sharing />
    </ConversationContext>
  );
}

function Title() {
  const session = useSide((side) => side.session);
  const [naming, setNaming] = useState(false);
  const title = titleOf(session);
  useTab(title, session?.active_run_id !== undefined);
  const place = placeOf(session);
  return (
    <div className="flex min-w-0 items-center gap-2 pl-1 lg:flex-1">
      {naming && session ? (
        <RenameField session={session} onDone={() => setNaming(false)} className="min-w-0 flex-1" />
      ) : (
        title && (
          <>
            <h1 className="sr-only truncate text-[13px] text-muted lg:not-sr-only lg:truncate" onDoubleClick={() => setNaming(true)}>
              {title}
            </h1>
            <IconButton label={t("history.rename")} className="size-7 max-lg:hidden" onClick={() => setNaming(true)}>
              <PencilIcon className="size-3.5" />
            </IconButton>
            {session && (
              <IconButton label={t("share.open")} className="size-7 max-lg:hidden" onClick={() => sharing.set(session.id)}>
                <ShareIcon className="size-3.5" />
              </IconButton>
            )}
          </>
        )
      )}
      {place && (
        <span className="hidden min-w-0 max-w-[50%] shrink-0 truncate rounded-md bg-raised px-1.5 font-mono text-[11.5px] text-muted sm:block" title={place}>
          <span className="sr-only">{t("source.label")}: </span>
          {place}
        </span>
      )}
    </div>
  );
}

function PanelToggle({ open, onToggle }: { open: boolean; onToggle: () => void }) {
  const pending = useSide((side) => side.questions.some((it) => it.state === "pending"));
  return (
    <IconButton label={open ? t("panel.close") : t("panel.open")} aria-expanded={open} className="relative" onClick={onToggle}>
      <PanelIcon />
      {pending && <span className="absolute right-1 top-1 size-2 rounded-full bg-warn" />}
    </IconButton>
  );
}

/** Updated offers the page of a server that was updated: files of the old one may be gone. */
function Updated() {
  const old = useStore(updated);
  return (
    <div role="status">
      {old && (
        <p className="flex flex-wrap items-center justify-center gap-2 bg-accent-soft py-1 text-[12.5px] text-accent">
          {t("app.updated")}
          <button type="button" className="font-semibold underline underline-offset-2" onClick={() => location.reload()}>
            {t("app.reload")}
          </button>
        </p>
      )}
    </div>
  );
}

function Offline() {
  const up = useStore(online);
  return (
    <div role="status">
      {!up && (
        <p className="flex items-center justify-center gap-2 bg-warn-soft py-1 text-[12.5px] text-warn">
          <Spinner className="size-3.5" /> {t("app.offline")}
        </p>
      )}
    </div>
  );
}
