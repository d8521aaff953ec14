"use strict";
// Posts what a provider of logins sent this browser back with, and keeps the proof where only this origin can read it.
const given = new URLSearchParams(location.search);
history.replaceState(null, "", location.pathname); // the code does not stay in the address
const at = (id) => document.getElementById(id);
const chinese = navigator.language.startsWith("zh");
if (chinese) {
  document.documentElement.lang = "zh-CN";
  at("title").textContent = "正在登录…";
  at("again").textContent = "返回登录页面";
}

function failed(text) {
  at("title").textContent = chinese ? "登录失败" : "The login failed";
  at("problem").textContent = text;
  at("again").hidden = false;
}

async function finish() {
  if (given.has("error")) return failed([given.get("error"), given.get("error_description")].filter(Boolean).join(": "));
  const body = { code: given.get("code") ?? "", state: given.get("state") ?? "" };
  if (given.has("iss")) body.iss = given.get("iss");
  const response = await fetch("/auth/oidc/callback", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) return failed([answer.detail, answer.hint].filter(Boolean).join(". "));
  localStorage.setItem("thole.proof", answer.proof);
  let to = new URL("/", location.origin);
  try {
    const next = new URL(answer.next || "/", location.origin);
    if (next.origin === to.origin) to = next;
  } catch {}
  location.replace(to.href);
}
finish().catch((error) => failed(String(error)));
