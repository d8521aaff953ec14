"use strict";
// Logs this browser in with a login and a password, chooses the password of an account with the code in the
// address's fragment, which no server is sent, or with #change another password for who is logged in.
const code = new URLSearchParams(location.hash.slice(1)).get("code");
const change = location.hash === "#change";
history.replaceState(null, "", location.pathname); // the code does not stay in the address
const at = (id) => document.getElementById(id);

const chinese = navigator.language.startsWith("zh");
const words = chinese
  ? { title: "登录", choose: "设置密码", login: "用户名", name: "姓名", password: "密码", change: "更改密码", old: "当前密码", next: "新密码", first: "请先登录。", go: "继续", setup: "仅在首次设置服务器时填写", sso: (label) => `通过 ${label} 登录` }
  : { title: "Log in", choose: "Choose a password", login: "Login", name: "Name", password: "Password", change: "Change your password", old: "Old password", next: "New password", first: "Log in first.", go: "Go on", setup: "only for the set-up of a server", sso: (label) => `Log in with ${label}` };
if (chinese) document.documentElement.lang = "zh-CN";
const refused = { 401: "用户名或密码不正确，或链接已失效。", 403: "当前密码不正确。", 422: "所填内容不合要求；密码至少 10 个字符。", 429: "尝试次数太多，请稍后再试。" };
at("title").textContent = change ? words.change : code ? words.choose : words.title;
for (const id of ["login", "name", "password", "old"]) at(`${id}-text`).textContent = words[id];
at("go").textContent = words.go;
if (change) {
  at("login-row").hidden = true;
  at("old-row").hidden = false;
  at("old").required = true;
  at("password-text").textContent = words.next;
} else if (code) {
  at("name-row").hidden = false;
  at("login").placeholder = words.setup;
} else {
  void fetch("/auth/ways")
    .then((response) => response.json())
    .then((ways) => {
      if (!ways.sso) return;
      at("sso").textContent = words.sso(ways.sso);
      at("sso").hidden = false;
    });
}
at("password").autocomplete = code || change ? "new-password" : "current-password";

at("form").onsubmit = async (event) => {
  event.preventDefault();
  if (change) return void (await changed());
  const body = { password: at("password").value };
  if (at("login").value) body.login = at("login").value;
  if (code) Object.assign(body, { code, name: at("name").value });
  const response = await fetch(code ? "/auth/account" : "/auth/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (response.ok) {
    localStorage.setItem("thole.proof", answer.proof);
    const next = sessionStorage.getItem("thole.next") ?? "/"; // of a page of this origin
    sessionStorage.removeItem("thole.next");
    return location.replace(next);
  }
  refuse(response, answer);
};

function refuse(response, answer) {
  const said = [answer.detail, answer.hint].filter(Boolean).join(". ");
  at("problem").textContent = chinese ? `${refused[response.status] ?? "未能完成。"}（${said}）` : said;
}

async function changed() {
  const headers = { "content-type": "application/json", "thole-proof": localStorage.getItem("thole.proof") ?? "" };
  const response = await fetch("/auth/password", { method: "PUT", headers, body: JSON.stringify({ old: at("old").value, password: at("password").value }) });
  if (response.ok) return location.replace("/");
  if (response.status === 401) at("problem").textContent = words.first;
  else refuse(response, await response.json());
}
