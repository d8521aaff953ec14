import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { get } from "./api/http";
import { App } from "./app";
import { listen, start } from "./events/client";
import { speak, t, useLanguage } from "./i18n";
import { LoginPage } from "./login";
import { login, whoAmI } from "./state/account";
import { followInbox, loadInbox } from "./state/inbox";
import { followBuild, install } from "./state/installed";
import { followNotices } from "./state/notices";
import { followTheme } from "./state/prefs";
import { loadProviders } from "./state/providers";
import { followSessions, loadSessions } from "./state/sessions";
import { route } from "./state/route";
import { useStore } from "./state/store";
import { followTab } from "./state/tab";
import "./styles.css";
import { Boundary } from "./ui/boundary";
import { Button, Notice } from "./ui/controls";
import { later } from "./ui/later";

const SharePage = later(() => import("./share/page"));

/** Root is the page of a share link, which wants no login, or everything else. */
function Root() {
  useLanguage();
  const here = useStore(route);
  return here.page === "share" ? <SharePage key={here.token} token={here.token} /> : <Own />;
}

function Own() {
  const state = useStore(login);
  const isIn = state.state === "in";
  useEffect(() => {
    if (!isIn) return;
    start();
    const stops = [followSessions(), followInbox(), followTab(), followNotices(), followBuild()];
    // A stream that is refused looks like one that is lost: only another request says that nobody is logged in.
    const out = listen({ logout: () => login.set({ state: "out" }), offline: () => void get("/auth/session").catch(() => {}) });
    loadProviders().catch(() => {});
    loadSessions().catch(() => {});
    loadInbox().catch(() => {});
    install();
    return () => {
      for (const stop of stops) stop();
      out();
    };
  }, [isIn]);
  if (state.state === "in") return <App />;
  if (state.state === "out") return <LoginPage />;
  if (state.state === "failed")
    return (
      <main className="flex h-full items-center justify-center p-4">
        <Notice tone="bad" title={t("app.failed")} action={<Button onClick={() => void whoAmI()}>{t("app.again")}</Button>}>
          {state.problem.message}
          {state.problem.hint && <p>{state.problem.hint}</p>}
        </Notice>
      </main>
    );
  return null;
}

followTheme();
if (route.get().page !== "share") void whoAmI();
void speak().then(() =>
  createRoot(document.getElementById("root")!).render(
    <StrictMode>
      <Boundary of="app">
        <Root />
      </Boundary>
    </StrictMode>,
  ),
);
