/**
 * A certified provider of OpenID Connect for tests, at a port of this machine. People sign in there with any password.
 *
 * `node provider.mjs SETTINGS`, where SETTINGS is JSON: {port, redirect, people: {name: {claims}}, key}. `key` is a file,
 * which is made if there is none. It says a line when it listens, and ends with its standard input.
 */

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { Provider } from "oidc-provider";

const { port, redirect, people, key } = JSON.parse(process.argv[2]);

if (!existsSync(key)) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const made = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
  writeFileSync(key, JSON.stringify(made));
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "events",
      client_secret: "the secret of the tests",
      redirect_uris: [redirect],
      post_logout_redirect_uris: [redirect],
    },
  ],
  jwks: { keys: [JSON.parse(readFileSync(key, "utf8"))] },
  cookies: { keys: ["only for tests"] },
  // As the specification wants, names and groups are in `userinfo`, and not in the ID token.
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email", "email_verified"] },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
});

process.stdin.on("end", () => process.exit()).resume();
provider.listen(port, "127.0.0.1", () => console.log("listening"));
