/** Files that runs reported: where the page finds them, and what to say of those that it cannot show. */

import { dataAddress, file } from "./client";

/** What a file is, by the ending of its name. */
export type FileKind = "image" | "audio" | "video" | "html" | "other";

const ENDINGS: readonly (readonly [FileKind, RegExp])[] = [
  ["image", /\.(png|jpe?g|gif|webp|bmp|svg|avif|ico)$/i],
  ["audio", /\.(mp3|wav|ogg|oga|flac|m4a|aac|opus)$/i],
  ["video", /\.(mp4|webm|mov|m4v|ogv|mkv|avi)$/i],
  ["html", /\.html?$/i],
];

export function kindOf(url: string): FileKind {
  if (/^data:image\//i.test(url)) return "image";
  const path = url.split(/[?#]/, 1)[0] ?? "";
  return ENDINGS.find(([, ending]) => ending.test(path))?.[0] ?? "other";
}

/** The name of a file: the last step of its address. */
export function nameOf(url: string): string {
  const last = (url.split(/[?#]/, 1)[0] ?? "").split("/").filter(Boolean).at(-1) ?? "file";
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** Where the page loads a file from; null if it lies where only its owner's programs can reach it. */
export function placeOfFile(url: string): string | null {
  if (/^data:image\//i.test(url)) return url;
  return /^https?:\/\//i.test(url) ? dataAddress("/data/file", { url }) : null;
}

/** Why a file is not shown, and what to do. */
export function whyNot(url: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? "";
  switch (scheme) {
    case "s3":
    case "gs":
    case "azure":
      return "It lies in an object store, which only the credentials of your programs open.";
    case "file":
    case "":
      return "It lies in a folder of the machine that ran this.";
    case "http":
    case "https":
      return "It is not on this server, or was deleted. This page loads nothing from other servers.";
    default:
      return "It lies where this page cannot reach it.";
  }
}

/** A link that a browser can open in a tab of its own; null if there is none. */
export function linkOf(url: string): string | null {
  return /^https?:\/\//i.test(url) ? url : null;
}

/** A file's content. Throws ServerError. */
export async function blobOf(url: string, signal?: AbortSignal): Promise<Blob> {
  const place = placeOfFile(url);
  if (!place) throw new Error(whyNot(url));
  return (await file(place, signal)).blob();
}

/** Have the browser save something under a name. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[^\p{L}\p{N}._ -]+/gu, "_").slice(0, 120);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
