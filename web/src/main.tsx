import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { get } from "./api/http";
import { App } from "./app";
import { listen, start } from "./events/client";
import { t, useLanguage } from "./i18n";
import { LoginPage } from "./login";
import { login, whoAmI } from "./state/account";
import { followTheme } from "./state/prefs";
import { loadProviders } from "./state/providers";
import { followSessions, loadSessions } from "./state/sessions";
import { useStore } from "./state/store";
import "./styles.css";
import { Button, Notice } from "./ui/controls";

function Root() {
  useLanguage();
  const state = useStore(login);
  const isIn = state.state === "in";
  useEffect(() => {
    if (!isIn) return;
    start();
    const stop = followSessions();
    // A stream that is refused looks like one that is lost: only another request says that nobody is logged in.
    const out = listen({ logout: () => login.set({ state: "out" }), offline: () => void get("/auth/session").catch(() => {}) });
    loadProviders().catch(() => {});
    loadSessions().catch(() => {});
    return () => {
      stop();
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
void whoAmI();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Root />
  </StrictMode>,
);
