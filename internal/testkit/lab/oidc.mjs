// A provider of logins with forms of its own, for one client. It prints its issuer, and answers
// after a line on standard input that says where the client is and what to say of users.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

let answer;
const ready = new Promise((resolve) => (answer = resolve));
const server = createServer((request, response) => void ready.then((handler) => handler(request, response)));
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
createInterface({ input: process.stdin }).on("line", (line) => {
  const { page, claims } = JSON.parse(line);
  const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    clients: [
      {
        client_id: "thole",
        client_secret: "hush",
        redirect_uris: [`${page}/auth/oidc/callback`],
        post_logout_redirect_uris: [`${page}/auth/account`],
        backchannel_logout_uri: `${page}/auth/oidc/backchannel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "preferred_username", "groups"] },
    cookies: { keys: ["lab"] },
    features: { backchannelLogout: { enabled: true } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...claims[id] }) }),
    fetch: (url, { dispatcher: _, ...options }) => fetch(url, options), // its own refuses loopback addresses
    pkce: { required: () => true },
  });
  for (const event of ["server_error", "backchannel.error"]) provider.on(event, (...about) => console.error(event, ...about.filter((one) => one instanceof Error)));
  answer(provider.callback());
});
