/**
 * A page of the viewer without a browser: the built pages in a document of happy-dom, before a `FakeServer` and a `Clock`.
 *
 * Each page runs the scripts anew, as a browser that loads them does, so tests share nothing. All that a test does waits for
 * what it needs, by going from timer to timer of the page: no test waits for real time. There is no layout: every box has
 * the size of the window, and all of a page is on the screen. What depends on layout is tested in a browser.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Window } from "happy-dom";

import { Clock } from "./clock";
import { allOf, click, FOCUSABLE, fill, nameOf, press, textOf } from "./screen";
import type { FakeServer, Held } from "./server";

const ORIGIN = "http://server";
const WIDTH = 1400;
const HEIGHT = 900;
/** Timers of a page after which what has not happened will not. */
const PATIENCE = 400;
/** Names of the window that a page uses, beside all of its classes. */
const NAMES = ["document", "localStorage", "sessionStorage", "getComputedStyle", "CSS"];

/** The pages as one function of all that they find in a window, so that each call is a page that is just loaded. */
let load: ((...globals: unknown[]) => void) | null = null;
let parameters: string[] = [];

export class Page {
  readonly clock = new Clock();
  readonly window = new Window({
    url: `${ORIGIN}/`,
    width: WIDTH,
    height: HEIGHT,
    settings: { disableIframePageLoading: true },
  });
  /** Where the document was left for, by scripts or links: "reload" if it was to be loaded anew. */
  readonly left: string[] = [];
  readonly faults: string[] = [];
  #history: string[];
  #at = 0;

  constructor(
    address: string,
    readonly server: FakeServer,
    stored: Readonly<Record<string, unknown>> = {},
  ) {
    this.#history = [address];
    for (const [name, value] of Object.entries(stored))
      this.window.localStorage.setItem(`viewer.${name}`, JSON.stringify(value));
    layOut(this.window, (run) => this.clock.later(run));
    this.document.body.innerHTML = '<div id="page"></div>';
    this.window.addEventListener("error", (event) => this.faults.push(String((event as unknown as ErrorEvent).error)));
    const globals = this.#globals();
    if (!load) {
      parameters = Object.keys(globals);
      const code = readFileSync(join(import.meta.dirname, "page.js"), "utf8");
      load = new Function(...parameters, code) as (...globals: unknown[]) => void;
    }
    load(...parameters.map((name) => globals[name]));
  }

  get document(): Document {
    return this.window.document as unknown as Document;
  }

  /** Path and query of the address that the browser shows. */
  get address(): string {
    return this.#history[this.#at]!;
  }

  get focus(): Element | null {
    return this.document.activeElement;
  }

  // What is seen

  /** The elements of a role, now. */
  all(role: string, name?: string): HTMLElement[] {
    return allOf(this.document, role, name);
  }

  /** A part of the page: finds and uses only what is in there. */
  in(role: string, name?: string): Part {
    return new Part(this, () => this.document, role, name);
  }

  /** Wait for something to be true, and return it. */
  async until<T>(look: () => T, what = look.toString()): Promise<NonNullable<T>> {
    for (let n = 0; n < PATIENCE; n++) {
      await drained();
      const seen = look();
      if (seen) return seen;
      if (!this.clock.next()) break;
    }
    return assert.fail(`this did not happen: ${what}\n${textOf(this.document.body).slice(0, 2000)}`);
  }

  /** Wait until some text is on the page, anywhere. */
  async sees(text: string): Promise<void> {
    await this.until(() => textOf(this.document.body).includes(text), `the page has the text ${text}`);
  }

  /** Wait until a question that is held back has arrived. */
  async arrived(held: readonly Held[], count = 1): Promise<Held> {
    return this.until(() => held[count - 1], `${count} questions arrive`);
  }

  /** Let all happen that is due in so many milliseconds. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.clock.now + milliseconds;
    for (await drained(); this.clock.next(end); ) await drained();
    this.clock.now = end;
  }

  /** Let happen what happens by itself now: answers that are there, and the next drawing. */
  settle(): Promise<void> {
    return this.pass(100);
  }

  /** Whether the page follows what changes, so that it hears what the server tells. */
  async live(): Promise<void> {
    await this.until(() => this.all("status").some((one) => textOf(one) === "Live"));
  }

  // What its user does

  async get(role: string, name?: string): Promise<HTMLElement> {
    return new Part(this, () => this.document, role, name).element();
  }

  async click(role: string, name?: string, options: { detail?: number; shiftKey?: boolean } = {}): Promise<void> {
    await this.in(role, name).click(options);
  }

  async fill(role: string, name: string, text: string): Promise<void> {
    await this.in(role, name).fill(text);
  }

  async press(...keys: string[]): Promise<void> {
    await this.#drawn(); // what has just come listens after it was drawn
    for (const key of keys) {
      press(this.document, key);
      await this.#drawn();
    }
  }

  /** Type a text where the focus is. */
  async type(text: string): Promise<void> {
    await this.press(...text);
  }

  /** The browser's button. */
  async back(): Promise<void> {
    this.#at = Math.max(0, this.#at - 1);
    this.window.dispatchEvent(new this.window.Event("popstate"));
    await this.#drawn();
  }

  /** The browser shows another tab, or this one again. */
  hide(isHidden: boolean): void {
    Object.defineProperty(this.document, "hidden", { configurable: true, get: () => isHidden });
    this.document.dispatchEvent(new this.window.Event("visibilitychange") as unknown as Event);
  }

  /** Another tab has written down who is signed in. */
  hear(who: string | null): void {
    const { localStorage, StorageEvent } = this.window;
    if (who === null) localStorage.removeItem("viewer.user");
    else localStorage.setItem("viewer.user", JSON.stringify(who));
    this.window.dispatchEvent(new StorageEvent("storage", { key: "viewer.user" }));
  }

  /** Draw what has changed. */
  async #drawn(): Promise<void> {
    await drained();
    const end = this.clock.now + 16;
    while (this.clock.next(end)) await drained();
  }

  drawn(): Promise<void> {
    return this.#drawn();
  }

  /** End the page; fails if it did what no page does. */
  close(): void {
    void this.window.happyDOM.abort();
    assert.deepEqual(this.faults, []);
    assert.deepEqual(this.server.strange, [], "nobody answers for these");
  }

  #globals(): Record<string, unknown> {
    const { window } = this;
    const given = window as unknown as Record<string, unknown>;
    const classes = Object.getOwnPropertyNames(window).filter(
      (name) => /^[A-Z][A-Za-z]+$/.test(name) && !(name in globalThis),
    );
    const own = ["Event", "EventTarget", "CustomEvent", "MessageEvent", "DOMException", "Blob", "File"];
    const found = [...classes, ...own, ...NAMES].map((name) => [name, given[name]]);
    const shown = (): URL => new URL(this.address, ORIGIN);
    const leave = (address: string): void => void this.left.push(address);
    const location = {
      get pathname() {
        return shown().pathname;
      },
      get search() {
        return shown().search;
      },
      get hash() {
        return shown().hash;
      },
      get href() {
        return shown().href;
      },
      origin: ORIGIN,
      host: "server",
      protocol: "http:",
      assign: leave,
      replace: leave,
      reload: () => leave("reload"),
    };
    const history = {
      pushState: (_: unknown, __: string, address: string) => {
        this.#history = [...this.#history.slice(0, this.#at + 1), address];
        this.#at++;
      },
      replaceState: (_: unknown, __: string, address: string) => (this.#history[this.#at] = address),
    };
    const globals: Record<string, unknown> = {
      ...Object.fromEntries(found),
      ...this.clock.globals(),
      ...this.server.globals((run) => this.clock.later(run)),
      ...observers((run) => this.clock.later(run)),
      location,
      history,
      innerWidth: WIDTH,
      innerHeight: HEIGHT,
      devicePixelRatio: 1,
      scrollTo: () => undefined,
      getSelection: () => ({ isCollapsed: true, removeAllRanges: () => undefined }),
      matchMedia: () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }),
      addEventListener: window.addEventListener.bind(window),
      removeEventListener: window.removeEventListener.bind(window),
      dispatchEvent: window.dispatchEvent.bind(window),
      navigator: {
        clipboard: { writeText: async (text: string) => void this.copied.push(text) },
        language: "en",
        userAgent: "test",
      },
      console: { ...console, error: (...said: unknown[]) => this.faults.push(said.map(String).join(" ")) },
    };
    globals["window"] =
      globals["self"] =
      globals["globalThis"] =
        new Proxy(globals, {
          get: (all, name) => (name in all ? all[name as string] : Reflect.get(window, name)),
        });
    return globals;
  }

  /** What was copied. */
  readonly copied: string[] = [];
}

/** A part of a page, by role and name; what is done waits until there is exactly such an element. */
export class Part {
  constructor(
    readonly page: Page,
    private readonly root: () => ParentNode | null,
    private readonly role: string,
    private readonly name?: string,
    private readonly more: (element: HTMLElement) => boolean = () => true,
  ) {}

  /** The elements there are now. */
  all(): HTMLElement[] {
    const root = this.root();
    return root ? allOf(root, this.role, this.name).filter(this.more) : [];
  }

  /** Only those with a text in them. */
  with(text: string): Part {
    return new Part(this.page, this.root, this.role, this.name, (one) => this.more(one) && textOf(one).includes(text));
  }

  /** A part of this part. */
  in(role: string, name?: string): Part {
    return new Part(this.page, () => this.all()[0] ?? null, role, name);
  }

  get count(): number {
    return this.all().length;
  }

  text(): string {
    return textOf(this.all()[0] ?? null);
  }

  texts(): string[] {
    return this.all().map((one) => textOf(one));
  }

  value(): string {
    return (this.all()[0] as HTMLInputElement | undefined)?.value ?? "";
  }

  hasFocus(): boolean {
    return this.all()[0] === this.page.focus && this.page.focus !== null;
  }

  until<T>(look: () => T, what = look.toString()): Promise<NonNullable<T>> {
    return this.page.until(look, `${this.role} ${this.name ?? ""}: ${what}`);
  }

  /** Wait until there is one. */
  async element(): Promise<HTMLElement> {
    const all = await this.until(() => (this.all().length ? this.all() : null), "there is one");
    assert.equal(
      all.length,
      1,
      `${all.length} elements are ${this.role} ${this.name ?? ""}: ${all.map(nameOf).join(" | ")}`,
    );
    return all[0]!;
  }

  async gone(): Promise<void> {
    await this.until(() => this.count === 0, "there is none");
  }

  async has(text: string): Promise<void> {
    await this.until(() => this.text().includes(text), `it has the text ${text}, not ${this.text()}`);
  }

  async lacks(text: string): Promise<void> {
    await this.until(() => this.count && !this.text().includes(text), `it has not the text ${text}`);
  }

  async click(options: { detail?: number; shiftKey?: boolean } = {}): Promise<void> {
    click(await this.element(), options);
    await this.page.drawn();
  }

  /** Press the pointer twice, before anything else can happen. */
  async doubleClick(): Promise<void> {
    const element = await this.element();
    click(element, { detail: 1 });
    click(element, { detail: 2 });
    await this.page.drawn();
  }

  async fill(text: string): Promise<void> {
    fill((await this.element()) as HTMLInputElement, text);
    await this.page.drawn();
  }

  async press(...keys: string[]): Promise<void> {
    (await this.element()).focus();
    await this.page.press(...keys);
  }
}

/** Promises that are kept go on; nothing here takes more turns. */
async function drained(): Promise<void> {
  for (let n = 0; n < 4; n++) await new Promise((done) => setImmediate(done));
}

/** Give every box the size of the window, letters a width, and dialogs and popovers what they do. */
function layOut(window: Window, later: (run: () => void) => void): void {
  const { HTMLElement, Element, Event } = window;
  const box = { left: 0, top: 0, x: 0, y: 0, right: WIDTH, bottom: HEIGHT, width: WIDTH, height: HEIGHT };
  const sizes = { clientWidth: WIDTH, clientHeight: HEIGHT, offsetWidth: WIDTH, offsetHeight: HEIGHT };
  for (const [name, size] of Object.entries(sizes)) {
    for (const prototype of [HTMLElement.prototype, Element.prototype]) {
      Object.defineProperty(prototype, name, { configurable: true, get: () => size });
    }
  }
  function toggle(this: HTMLElement, isOpen: boolean): void {
    if (this.hasAttribute("data-open") === isOpen) return;
    this.toggleAttribute("data-open", isOpen);
    const told = Object.assign(new Event("toggle"), { newState: isOpen ? "open" : "closed" });
    later(() => this.dispatchEvent(told as unknown as globalThis.Event));
  }
  Object.assign(HTMLElement.prototype, {
    getBoundingClientRect: () => box,
    scrollIntoView: () => undefined,
    setPointerCapture: () => undefined,
    showPopover(this: HTMLElement) {
      toggle.call(this, true);
    },
    hidePopover(this: HTMLElement) {
      toggle.call(this, false);
    },
  });
  const pen = new Proxy(
    {},
    { get: (_, name) => (name === "measureText" ? (text: string) => ({ width: 7 * text.length }) : () => undefined) },
  );
  Object.assign(window.HTMLCanvasElement.prototype, { getContext: () => pen });
  Object.assign(window.HTMLDialogElement.prototype, {
    showModal(this: HTMLDialogElement) {
      this.setAttribute("open", "");
      (this.querySelector<HTMLElement>("[autofocus]") ?? this.querySelector<HTMLElement>(FOCUSABLE))?.focus();
    },
  });
}

/** Observers of layout: all is on the screen, and has the size of the window, from when it is watched. */
function observers(later: (run: () => void) => void): Record<string, unknown> {
  class Watch {
    constructor(readonly told: (entries: object[]) => void) {}
    observe(target: Element): void {
      later(() => this.told([{ target, isIntersecting: true, contentRect: { width: WIDTH, height: HEIGHT } }]));
    }
    unobserve(): void {}
    disconnect(): void {}
  }
  return { ResizeObserver: Watch, IntersectionObserver: Watch };
}
