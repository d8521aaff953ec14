"use strict";
// Shows the program that waits with a code, and lets it in or refuses it.
const at = (id) => document.getElementById(id);
const chinese = navigator.language.startsWith("zh");
const words = chinese
  ? {
      title: "允许程序登录", "code-text": "程序显示的代码", look: "查看", "name-text": "程序", "from-text": "来自", "scope-text": "权限", yes: "允许", no: "拒绝", login: "登录",
      warn: "仅当是您本人刚刚发起此登录，且程序显示相同代码时，才继续。", in: "程序已登录。您可以关闭此页面。", out: "已拒绝。", first: "请先登录，再输入代码。",
      read: "查看您的内容", act: "以您的身份查看和操作", admin: "以您的身份执行一切操作，包括管理",
    }
  : {
      title: "Let a program in", "code-text": "Code that the program shows", look: "Show it", "name-text": "Program", "from-text": "Asked from", "scope-text": "May", yes: "Let it in", no: "Refuse", login: "Log in",
      warn: "Go on only if you started this login yourself just now and the program shows the same code.", in: "The program is in. You can close this page.", out: "It was refused.", first: "Log in first, then type the code.",
      read: "see what you see", act: "see and do what you can, as you", admin: "do everything that you can, as you, and manage what you manage",
    };
if (chinese) document.documentElement.lang = "zh-CN";
for (const id of ["title", "code-text", "look", "name-text", "from-text", "scope-text", "warn", "yes", "no", "login"]) at(id).textContent = words[id];
at("code").value = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";

async function ask(method, body) {
  const headers = { "thole-proof": localStorage.getItem("thole.proof") ?? "", ...(body && { "content-type": "application/json" }) };
  const response = await fetch(`/auth/devices/${encodeURIComponent(at("code").value.trim())}`, { method, headers, body: body && JSON.stringify(body) });
  if (response.status === 204) return {};
  const answer = await response.json();
  if (response.ok) return answer;
  const again = response.status === 401 || (response.status === 403 && method === "POST");
  if (again) sessionStorage.setItem("thole.next", `/auth/device#code=${at("code").value.trim()}`);
  at("login").hidden = !again;
  at("problem").textContent = response.status === 401 ? words.first : [answer.detail, answer.hint].filter(Boolean).join(". ");
}

async function show() {
  at("problem").textContent = "";
  const program = await ask("GET");
  at("asks").hidden = !program;
  if (!program) return;
  at("name").textContent = program.name;
  at("from").textContent = program.address;
  at("scope").textContent = words[program.scope];
}

async function end(confirm) {
  if (!(await ask("POST", { confirm }))) return;
  at("form").hidden = at("asks").hidden = true;
  at("title").textContent = confirm ? words.in : words.out;
}
at("form").onsubmit = (event) => {
  event.preventDefault();
  void show();
};
at("yes").onclick = () => void end(true);
at("no").onclick = () => void end(false);
if (at("code").value) void show();
