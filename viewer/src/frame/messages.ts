/**
 * What the page (the host) and the frame that draws figures (the guest) say to each other. Pure.
 *
 * The frame is sandboxed and has no origin: it has no cookie, no storage and no network, and reaches neither the page nor
 * the server. The page trusts nothing that it says: each message is checked here, and can at most change how the frame's
 * own figures are spoken of.
 *
 *     page                                frame
 *       |  (the frame's document loads)     |
 *       |  connect, with a MessagePort ---> |   once, by window.postMessage; all else goes over the port
 *       | <------------------------ ready   |
 *       |  colours -----------------------> |
 *       |  draw 1 ------------------------> |   one figure at a time: the next waits for the answer
 *       | <--------------- drawn or failed  |   no answer in time: the page makes a new frame without that figure
 *       |  place [1, 2, …] ---------------> |   figures moved or changed their size
 *       |  png 1 -------------------------> |
 *       | <------------------------- png 1  |
 *       |  purge 1 -----------------------> |   the figure is off screen, or gone
 *       | <----------------------- escape   |   the key was pressed in a figure: the page takes the focus back
 */

/** Where a figure is in the frame, in CSS pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The colours of the page, as CSS has them. */
export interface Colours {
  readonly dark: boolean;
  readonly page: string;
  readonly text: string;
  readonly soft: string;
  readonly line: string;
}

export type ToGuest =
  | { kind: "colours"; colours: Colours }
  /** `text` is the figure as JSON; `images` has the pictures that it names by addresses. */
  | { kind: "draw"; id: number; text: string; box: Box; images: ReadonlyMap<string, Blob> }
  | { kind: "place"; boxes: readonly (readonly [id: number, box: Box])[] }
  | { kind: "png"; id: number }
  | { kind: "purge"; id: number };

export type ToHost =
  | { kind: "ready" }
  | { kind: "escape" }
  | { kind: "drawn"; id: number }
  | { kind: "failed"; id: number; reason: string }
  | { kind: "png"; id: number; bytes: ArrayBuffer | null };

/** The window message that brings the port. */
export const CONNECT = "connect";

/** A picture that the frame made may have so many bytes. */
export const MOST_BYTES = 64 * 2 ** 20;
const LONGEST_REASON = 300;

/** A message of the frame, or null if it is none. */
export function fromGuest(value: unknown): ToHost | null {
  if (typeof value !== "object" || value === null) return null;
  const { kind, id, reason, bytes } = value as Readonly<Record<string, unknown>>;
  if (kind === "ready" || kind === "escape") return { kind };
  if (!Number.isSafeInteger(id)) return null;
  const figure = id as number;
  switch (kind) {
    case "drawn":
      return { kind, id: figure };
    case "failed":
      return { kind, id: figure, reason: typeof reason === "string" ? reason.slice(0, LONGEST_REASON) : "" };
    case "png":
      if (bytes !== null && !(bytes instanceof ArrayBuffer && bytes.byteLength <= MOST_BYTES)) return null;
      return { kind, id: figure, bytes };
    default:
      return null;
  }
}
