/** What the SDK needs to reach this server. Pure. */

/** The content of a `clearml.conf`. `origin`: how the browser reaches the server, such as "https://runs.example". */
export function clientConfiguration(origin: string, key: string, secret: string): string {
  return [
    "api {",
    `    api_server: ${JSON.stringify(origin)}`,
    `    web_server: ${JSON.stringify(origin)}`,
    `    files_server: ${JSON.stringify(`${origin}/files`)}`,
    "    credentials {",
    `        "access_key" = ${JSON.stringify(key)}`,
    `        "secret_key" = ${JSON.stringify(secret)}`,
    "    }",
    "}",
    "",
  ].join("\n");
}
