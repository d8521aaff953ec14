"use strict";
// Logs this browser in with the code in the address's fragment, which no server is sent, and keeps the proof where
// only this origin can read it.
const given = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname); // the code does not stay in the address
const show = (id) => (document.getElementById(id).hidden = false);

const chinese = navigator.language.startsWith("zh");
if (chinese) {
  document.documentElement.lang = "zh-CN";
  const words = { "#ask h1": "让此浏览器登录？", "#ask p": "仅当你从自己的终端打开此页面时才继续。", "#go": "登录", "#problem h1": "此链接已失效", "#problem a": "用其他方式登录" };
  for (const [place, text] of Object.entries(words)) document.querySelector(place).textContent = text;
}

/** onward goes to a page of this origin, whatever the address asked for. */
function onward() {
  const home = new URL("/", location.origin);
  let to = home;
  try {
    to = new URL(given.get("next") ?? "/", location.origin);
  } catch {}
  location.replace(to.origin === home.origin && to.protocol === home.protocol ? to.href : home.href);
}

async function logIn() {
  const response = await fetch("/auth/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code: given.get("code") }) });
  const answer = await response.json();
  if (response.ok) {
    localStorage.setItem("thole.proof", answer.proof);
    return onward();
  }
  const used = chinese && response.status === 401;
  document.getElementById("detail").textContent = used ? "链接只能使用一次，而且会过期。" : (answer.detail ?? "");
  document.getElementById("hint").textContent = used ? "运行 `thole login` 可得到新链接。" : (answer.hint ?? "");
  document.getElementById("ask").hidden = true;
  show("problem");
}

async function begin() {
  const proof = localStorage.getItem("thole.proof");
  if (!given.get("code") || (proof && (await fetch("/auth/session", { headers: { "thole-proof": proof } })).ok)) return onward();
  if (!("ask" in document.body.dataset)) return logIn();
  document.getElementById("go").onclick = logIn;
  show("ask");
}
void begin();
