/**
 * The page's side of the frame that draws figures: makes the frame, says what it draws, and hears what it says.
 *
 * All figures of a board share one frame: each frame loads Plotly anew, and browsers have few WebGL contexts. The frame
 * draws one figure at a time. It is loading, then at rest or drawing. If it takes too long for a figure, or its document
 * goes away, it is replaced by a new frame, which draws the other figures again. `messages.ts` says what is exchanged.
 */

import { type Box, CONNECT, type Colours, fromGuest, type ToGuest, type ToHost } from "./messages";

/** How far a figure is. */
export type Progress =
  | { readonly state: "waiting" }
  | { readonly state: "drawn" }
  | { readonly state: "failed"; readonly words: string };

interface Wanted {
  readonly text: string;
  readonly images: ReadonlyMap<string, Blob>;
  readonly told: (progress: Progress) => void;
  box: Box;
}

/** Milliseconds that the frame may take to load, to draw a figure, and to make a picture of one. */
const LOADING = 20_000;
const DRAWING = 30_000;
const PICTURE = 30_000;
/** A frame is replaced so many times. A figure that ends its frame fails, so more are needed for bad figures only. */
const MOST_FRAMES = 8;

export class FigureFrame {
  private readonly figures = new Map<number, Wanted>();
  private readonly pictures = new Map<number, (bytes: ArrayBuffer | null) => void>();
  private queue: number[] = [];
  private element: HTMLIFrameElement | null = null;
  private port: MessagePort | null = null;
  private ready = false;
  private drawing: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private frames = 0;
  private colours: Colours;

  /** The frame is made inside of `place`, which it fills, when the first figure needs it. */
  constructor(
    private readonly place: HTMLElement,
    colours: Colours,
  ) {
    this.colours = colours;
  }

  /** Draw a figure, given as JSON, or draw it anew. `told` is called when that has got further. */
  draw(
    id: number,
    text: string,
    images: ReadonlyMap<string, Blob>,
    box: Box,
    told: (progress: Progress) => void,
  ): void {
    this.figures.set(id, { text, images, told, box });
    this.queue = [...this.queue.filter((one) => one !== id), id];
    told({ state: "waiting" });
    if (!this.element) this.open();
    this.next();
  }

  /** Say where figures are now. */
  move(boxes: readonly (readonly [id: number, box: Box])[]): void {
    for (const [id, box] of boxes) {
      const figure = this.figures.get(id);
      if (figure) figure.box = box;
    }
    this.say({ kind: "place", boxes });
  }

  /** Forget a figure: it is off screen, or gone. */
  remove(id: number): void {
    this.figures.delete(id);
    this.queue = this.queue.filter((one) => one !== id);
    this.say({ kind: "purge", id });
    if (this.drawing !== id) return;
    this.drawing = null;
    clearTimeout(this.timer);
    this.next();
  }

  /** A figure that was drawn, as PNG. */
  async png(id: number): Promise<Blob> {
    const bytes = await new Promise<ArrayBuffer | null>((resolve) => {
      this.pictures.set(id, resolve);
      setTimeout(() => resolve(null), PICTURE);
      this.say({ kind: "png", id });
    });
    this.pictures.delete(id);
    if (!bytes) throw new Error("the browser could not make a picture of this figure");
    return new Blob([bytes], { type: "image/png" });
  }

  dress(colours: Colours): void {
    this.colours = colours;
    this.say({ kind: "colours", colours });
  }

  close(): void {
    clearTimeout(this.timer);
    this.port?.close();
    this.element?.remove();
    this.port = this.element = this.drawing = null;
    this.ready = false;
  }

  private open(): void {
    const element = document.createElement("iframe");
    element.title = "Figures";
    element.setAttribute("sandbox", "allow-scripts");
    element.referrerPolicy = "no-referrer";
    element.src = "/frame.html";
    let loaded = false;
    element.onload = () => {
      if (loaded) return this.replace("its frame was left");
      loaded = true;
      this.connect(element);
    };
    this.element = element;
    this.place.append(element);
    this.frames += 1;
    this.timer = setTimeout(() => this.fail("the frame for figures does not load"), LOADING);
  }

  private connect(element: HTMLIFrameElement): void {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = (event: MessageEvent<unknown>) => {
      const message = fromGuest(event.data);
      if (message && this.port === port1) this.heard(message);
    };
    // The frame has no origin that could be named here. Only the document that has just loaded there hears it.
    element.contentWindow?.postMessage(CONNECT, "*", [port2]);
  }

  private heard(message: ToHost): void {
    if (message.kind === "ready") {
      clearTimeout(this.timer);
      this.ready = true;
      this.say({ kind: "colours", colours: this.colours });
      return this.next();
    }
    if (message.kind === "escape") return this.element?.blur();
    if (message.kind === "png") return this.pictures.get(message.id)?.(message.bytes);
    if (message.id !== this.drawing) return;
    this.end(message.kind === "drawn" ? { state: "drawn" } : { state: "failed", words: message.reason });
    this.next();
  }

  /** The figure that is being drawn has got this far. */
  private end(progress: Progress): void {
    clearTimeout(this.timer);
    const figure = this.drawing === null ? null : this.figures.get(this.drawing);
    this.drawing = null;
    figure?.told(progress);
  }

  private next(): void {
    if (!this.ready || this.drawing !== null) return;
    const id = this.queue.shift();
    const figure = id === undefined ? null : this.figures.get(id);
    if (id === undefined || !figure) return;
    this.drawing = id;
    this.timer = setTimeout(() => this.replace("it takes the browser too long to draw"), DRAWING);
    this.say({ kind: "draw", id, text: figure.text, box: figure.box, images: figure.images });
  }

  /** A new frame draws all figures but the one that was being drawn. */
  private replace(words: string): void {
    const bad = this.drawing;
    this.end({ state: "failed", words });
    if (bad !== null) this.figures.delete(bad);
    this.close();
    if (this.frames >= MOST_FRAMES) return this.fail("the frame for figures failed too often: reload the page");
    this.queue = [...this.figures.keys()];
    for (const figure of this.figures.values()) figure.told({ state: "waiting" });
    if (this.queue.length) this.open();
  }

  private fail(words: string): void {
    this.close();
    this.queue = [];
    for (const figure of this.figures.values()) figure.told({ state: "failed", words });
    this.figures.clear();
  }

  private say(message: ToGuest): void {
    if (this.ready) this.port?.postMessage(message);
  }
}
