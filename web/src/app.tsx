import { type ComponentType, lazy, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { ChatView } from "./chat/chat-view";
import { ConversationContext, useSide } from "./chat/context";
import { ProfileSwitch } from "./chat/profile-switch";
import { online } from "./events/client";
import { History } from "./history/history";
import { t, useLanguage } from "./i18n";
import { Panel } from "./panels/panel";
import { type Conversation, conversationOf } from "./state/conversation";
import { prefs, setPrefs } from "./state/prefs";
import { go, route } from "./state/route";
import { loadSessions, titleOf } from "./state/sessions";
import { placeOf } from "./state/source";
import { useStore } from "./state/store";
import { SettingsMenu } from "./settings-menu";
import { IconButton } from "./ui/controls";
import { Drawer } from "./ui/dialog";
import { Mark, MenuIcon, PanelIcon, PlusIcon, Spinner } from "./ui/icons";
import { Toast } from "./ui/toast";

// Pages that few visits need are loaded when they are asked for.
const Usage = lazy(() => import("./pages/usage"));
const Connections = lazy(() => import("./pages/connections"));

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
        <Workbench
          chatID={here.page === "chat" ? here.id : undefined}
          page={here.page === "usage" ? Usage : here.page === "connections" ? Connections : undefined}
        />
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
  const wide = useMedia("(min-width: 64rem)");
  const medium = useMedia("(min-width: 48rem)");
  const panel = useStore(prefs, (it) => it.panel);
  const roomy = useStore(prefs, (it) => it.tab === "changes"); // lines of code need more room than words
  const [historyOpen, setHistoryOpen] = useState(false);
  const [panelOpen, setPanelOpen] = useState(false);
  return (
    <ConversationContext value={conversation}>
      <div className="flex h-full flex-col">
        <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-surface px-2 md:px-3">
          {!medium && (
            <IconButton label={t("history.open")} onClick={() => setHistoryOpen(true)}>
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
            <SettingsMenu />
            {!Page && <PanelToggle open={wide ? panel : panelOpen} onToggle={() => (wide ? setPrefs({ panel: !panel }) : setPanelOpen(true))} />}
          </div>
        </header>
        <Offline />
        <div className="flex min-h-0 flex-1">
          {medium && (
            <aside aria-label={t("history.title")} className="w-64 shrink-0 border-r border-line bg-surface">
              <History />
            </aside>
          )}
          <main id="chat" tabIndex={-1} className="flex min-w-0 flex-1 flex-col outline-none" key={Page ? "page" : conversation.id}>
            {Page ? (
              <Suspense>
                <Page />
              </Suspense>
            ) : (
              <ChatView />
            )}
          </main>
          {wide && panel && !Page && (
            <aside aria-label={t("panel.label")} className={`${roomy ? "w-[min(48rem,46vw)]" : "w-[22rem]"} shrink-0 border-l border-line bg-surface`}>
              <Panel />
            </aside>
          )}
        </div>
      </div>
      {!medium && (
        <Drawer side="left" open={historyOpen} label={t("history.title")} onClose={() => setHistoryOpen(false)}>
          <History onPick={() => setHistoryOpen(false)} />
        </Drawer>
      )}
      {!wide && !Page && (
        <Drawer side="right" whole={roomy} open={panelOpen} label={t("panel.label")} onClose={() => setPanelOpen(false)}>
          <Panel onLeave={() => setPanelOpen(false)} />
        </Drawer>
      )}
    </ConversationContext>
  );
}

function Title() {
  const session = useSide((side) => side.session);
  const title = titleOf(session);
  useEffect(() => {
    document.title = title ? `${title.slice(0, 60)} · thole` : "thole";
  }, [title]);
  const place = placeOf(session);
  return (
    <div className="flex min-w-0 items-center gap-2 pl-1 lg:flex-1">
      {title && <h1 className="sr-only truncate text-[13px] text-muted lg:not-sr-only lg:truncate">{title}</h1>}
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
