/**
 * The script of the frame that draws figures with Plotly (`frame.html`). What it hears and says is in `messages.ts`.
 *
 * It runs without an origin, so it is a classic script, and gets everything by messages. The page says where each
 * figure lies: the frame lies behind the page's own content, which has a hole for each figure.
 */

import "./guest.css";

import { type Box, CONNECT, type Colours, type ToGuest, type ToHost } from "./messages";
import { bundleOf, type Figure, figureOf, isMap, themed } from "./plot";

/** What we use of Plotly. */
interface Plotly {
  newPlot(element: HTMLElement, figure: object): Promise<unknown>;
  react(element: HTMLElement, figure: object): Promise<unknown>;
  purge(element: HTMLElement): void;
  toImage(element: HTMLElement, options: object): Promise<string>;
  Plots: { resize(element: HTMLElement): Promise<unknown> };
}

interface Drawn {
  readonly element: HTMLElement;
  readonly figure: Figure;
  readonly plotly: Plotly;
  box: Box;
}

const CONFIG = {
  displaylogo: false,
  responsive: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["toImage", "sendDataToCloud", "lasso2d", "select2d"],
  topojsonURL: "",
};
/** Pixels of a PNG for each of the screen, in each direction. */
const SCALE = 2;

const drawn = new Map<number, Drawn>();
/** Figures that the page wants: it may give one up while Plotly is loaded for it. */
const wanted = new Set<number>();
let colours: Colours = { dark: false, page: "#fff", text: "#222", soft: "#666", line: "#ddd" };
let port: MessagePort | null = null;

addEventListener("message", (event) => {
  if (event.source !== parent || event.data !== CONNECT || port || !event.ports[0]) return;
  port = event.ports[0];
  port.onmessage = (message: MessageEvent<ToGuest>) => void heard(message.data);
  say({ kind: "ready" });
});

// A link in a figure would replace the frame's document.
addEventListener("click", (event) => (event.target as Element).closest?.("a") && event.preventDefault(), true);

// Keys that are pressed here stay here: those of the page work again after this one.
addEventListener("keydown", (event) => event.key === "Escape" && say({ kind: "escape" }));

function say(message: ToHost, ...transferred: Transferable[]): void {
  port?.postMessage(message, transferred);
}

async function heard(message: ToGuest): Promise<void> {
  switch (message.kind) {
    case "colours":
      colours = message.colours;
      dress();
      for (const one of drawn.values()) await redraw(one);
      return;
    case "draw":
      return draw(message);
    case "place":
      for (const [id, box] of message.boxes) place(drawn.get(id), box);
      return;
    case "png":
      return picture(message.id);
    case "purge":
      return purge(message.id);
  }
}

function dress(): void {
  document.documentElement.style.colorScheme = colours.dark ? "dark" : "light";
  document.body.style.background = colours.page;
}

async function draw({ id, text, box, images }: Extract<ToGuest, { kind: "draw" }>): Promise<void> {
  purge(id);
  wanted.add(id);
  try {
    const figure = figureOf(text);
    if (!figure) throw new Error("this is no figure of Plotly");
    if (isMap(figure)) throw new Error("maps need outlines or tiles from other hosts, which these pages do not load");
    const plotly = await bundle(bundleOf(figure));
    if (!wanted.has(id)) return;
    const element = document.createElement("div");
    element.className = "figure";
    document.body.append(element);
    const one: Drawn = { element, figure: withPictures(figure, images), plotly, box };
    drawn.set(id, one);
    lay(one);
    await plotly.newPlot(element, whole(one));
    say({ kind: "drawn", id });
  } catch (error) {
    purge(id);
    say({ kind: "failed", id, reason: error instanceof Error ? error.message : String(error) });
  }
}

/** The figure as Plotly takes it. Plotly changes what it is given, so it gets a layout of its own. */
function whole({ figure, box }: Drawn): object {
  const layout = { ...themed(figure.layout, colours), width: box.width, height: box.height };
  return { data: figure.data, layout, frames: figure.frames, config: CONFIG };
}

async function redraw(one: Drawn): Promise<void> {
  await one.plotly.react(one.element, whole(one)).catch(() => undefined);
}

function lay({ element, box }: Drawn): void {
  element.style.left = `${box.left}px`;
  element.style.top = `${box.top}px`;
  element.style.width = `${box.width}px`;
  element.style.height = `${box.height}px`;
}

function place(one: Drawn | undefined, box: Box): void {
  if (!one) return;
  const resized = box.width !== one.box.width || box.height !== one.box.height;
  one.box = box;
  lay(one);
  if (resized) void redraw(one);
}

function purge(id: number): void {
  const one = drawn.get(id);
  drawn.delete(id);
  wanted.delete(id);
  one?.plotly.purge(one.element);
  const images: unknown = one?.figure.layout["images"];
  for (const image of Array.isArray(images) ? images : []) {
    const source: unknown = (image as { source?: unknown } | null)?.source;
    if (typeof source === "string" && source.startsWith("blob:")) URL.revokeObjectURL(source);
  }
  one?.element.remove();
}

async function picture(id: number): Promise<void> {
  const one = drawn.get(id);
  const { width, height } = one?.box ?? { width: 0, height: 0 };
  const url = await one?.plotly.toImage(one.element, { format: "png", width, height, scale: SCALE }).catch(() => null);
  const bytes = url ? bytesOf(url) : null;
  say({ kind: "png", id, bytes }, ...(bytes ? [bytes] : []));
}

/** The bytes of a `data:image/png;base64,…`. */
function bytesOf(url: string): ArrayBuffer {
  const text = atob(url.slice(url.indexOf(",") + 1));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer;
}

function withPictures(figure: Figure, images: ReadonlyMap<string, Blob>): Figure {
  const given = figure.layout["images"];
  if (!images.size || !Array.isArray(given)) return figure;
  const replaced = given.map((image: { source?: string } | null) => {
    const blob = image && images.get(image.source ?? "");
    return blob ? { ...image, source: URL.createObjectURL(blob) } : image;
  });
  return { ...figure, layout: { ...figure.layout, images: replaced } };
}

const bundles = new Map<"few" | "all", Promise<Plotly>>();

/** Plotly, which is loaded when the first figure needs it. What the full bundle draws first, it draws all of. */
function bundle(which: "few" | "all"): Promise<Plotly> {
  const known = bundles.get("all") ?? bundles.get(which);
  if (known) return known;
  const loading = new Promise<Plotly>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.body.dataset[which] ?? "";
    script.onload = () => resolve((window as unknown as { Plotly: Plotly }).Plotly);
    script.onerror = () => reject(new Error("Plotly could not be loaded: reload the page"));
    document.head.append(script);
  });
  bundles.set(which, loading);
  return loading;
}

dress();
