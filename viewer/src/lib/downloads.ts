/**
 * Where artifacts and models are downloaded from, and how large they are. Pure.
 *
 * URIs of artifacts and models name a file of this server (by whatever name and port the client had for it), a page of
 * another server, an object store, or a folder of some machine.
 */

export type FilePlace =
  /** On this server: `address` leads to it. */
  | { readonly kind: "here"; readonly address: string }
  /** On another web server, or on this one by a name that only the server knows: then `address` leads to it, else `url`. */
  | { readonly kind: "web"; readonly address: string; readonly url: string; readonly host: string }
  /** Out of a browser's reach; `why` says where it lies. */
  | { readonly kind: "away"; readonly why: string }
  | { readonly kind: "none" };

const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);
const STORES: Readonly<Record<string, string>> = {
  s3: "Amazon S3, or a store like it",
  gs: "Google Cloud Storage",
  azure: "Azure Blob Storage",
  hdfs: "a Hadoop file system",
};

/** `ownHost`: the name of this server's host, as the browser has it (`location.hostname`). */
export function filePlace(uri: string | null | undefined, ownHost: string): FilePlace {
  if (!uri) return { kind: "none" };
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(uri)?.[1]?.toLowerCase();
  if (scheme === "http" || scheme === "https") return onTheWeb(uri, ownHost);
  if (!scheme || scheme === "file") return { kind: "away", why: "It lies in a folder of the machine that made it." };
  const store = STORES[scheme] ?? `a store that is reached by ${scheme}://`;
  return { kind: "away", why: `It lies in ${store}. Get it with a client that has the credentials.` };
}

function onTheWeb(uri: string, ownHost: string): FilePlace {
  if (!URL.canParse(uri)) return { kind: "away", why: "Its address is not valid." };
  const { hostname, host, href } = new URL(uri);
  const address = `/data/file?${new URLSearchParams({ url: uri })}`;
  return hostname === ownHost || LOCAL.has(hostname)
    ? { kind: "here", address }
    : { kind: "web", address, url: href, host };
}

/** 48211004 → "48.2 MB". */
export function sized(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ${units[unit]}`;
}
