/** Finds elements as their users do, by role and name, and uses them as hands do. */

/** Which elements have a role. */
const ROLES: Readonly<Record<string, string>> = {
  article: "article",
  button: "button:not([role]), [role=button]",
  cell: "td",
  checkbox: "input[type=checkbox]",
  combobox: "input[list], input[role=combobox], select",
  dialog: "dialog[open]",
  figure: "figure",
  group: "fieldset, [role=group]",
  heading: "h1, h2, h3, h4",
  link: "a[href]:not([role])",
  listitem: "li, [role=listitem]",
  menu: "[role=menu]",
  note: "[role=note]",
  option: "option, [role=option]",
  radio: "input[type=radio]",
  region: "section[aria-label], [role=region]",
  row: "tr, [role=row]",
  rowheader: "th[scope=row], [role=rowheader]",
  columnheader: "th[scope=col], [role=columnheader]",
  searchbox: "input[type=search]",
  status: "[role=status]",
  textbox: "input:not([type]):not([list]), input[type=text]:not([list]), input[type=password], textarea",
};
/** What the focus may be on. */
export const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";

/** The name of an element, as a screen reader says it. */
export function nameOf(element: Element): string {
  const label = element.getAttribute("aria-label");
  if (label !== null) return label;
  const by = element.getAttribute("aria-labelledby");
  if (by)
    return by
      .split(" ")
      .map((id) => textOf(element.ownerDocument.getElementById(id)))
      .join(" ");
  if (element.matches("input, select, textarea")) {
    const around =
      element.closest("label") ??
      (element.id ? element.ownerDocument.querySelector(`label[for="${element.id}"]`) : null);
    if (around) return textOf(around, element);
    return element.getAttribute("placeholder") ?? element.getAttribute("title") ?? "";
  }
  return textOf(element) || (element.getAttribute("title") ?? "");
}

/** The text that is seen in an element; what lies `without` is left out. */
export function textOf(element: Element | null, without: Element | null = null): string {
  const text = (node: Node): string => {
    if (node === without) return "";
    if (node.nodeType === 3) return node.nodeValue ?? "";
    const one = node as Element;
    if (one.tagName === "DIALOG" && !one.hasAttribute("open")) return "";
    const inner = [...node.childNodes].map(text).join("");
    return /^(TD|TH|LI|P|DIV|TR|H\d|SECTION|OPTION|DT|DD)$/.test(one.tagName ?? "") ? `${inner} ` : inner;
  };
  return element ? text(element).replace(/\s+/g, " ").trim() : "";
}

/** The elements of a role below another one: those of exactly this name, or else those that have it in theirs. */
export function allOf(root: ParentNode, role: string, name?: string): HTMLElement[] {
  const all = [...root.querySelectorAll<HTMLElement>(ROLES[role] ?? `[role=${role}]`)].filter(
    (one) => !one.closest("[hidden]"),
  );
  if (name === undefined) return all;
  const exact = all.filter((one) => nameOf(one) === name);
  return exact.length ? exact : all.filter((one) => nameOf(one).toLowerCase().includes(name.toLowerCase()));
}

/** Press and release the pointer on an element; `detail`: how many presses there were just now. */
export function click(element: HTMLElement, options: { detail?: number; shiftKey?: boolean } = {}): void {
  const { MouseEvent, PointerEvent } = element.ownerDocument.defaultView!;
  const how = { bubbles: true, cancelable: true, composed: true, button: 0, detail: 1, ...options };
  element.dispatchEvent(new PointerEvent("pointerdown", how));
  const focusable = element.closest<HTMLElement>(FOCUSABLE);
  const before = element.ownerDocument.activeElement as HTMLElement | null;
  if (focusable && !(focusable as HTMLButtonElement).disabled) focusable.focus();
  else before?.blur();
  element.dispatchEvent(new PointerEvent("pointerup", how));
  // A press that redraws the page may have put another element in the place.
  if (element.isConnected && !(element as HTMLButtonElement).disabled)
    element.dispatchEvent(new MouseEvent("click", how));
}

/** Give a field another text, as typing does. */
export function fill(field: HTMLInputElement, text: string): void {
  const { Event } = field.ownerDocument.defaultView!;
  if (field.ownerDocument.activeElement !== field) field.focus();
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  if (field.tagName === "SELECT") field.dispatchEvent(new Event("change", { bubbles: true }));
}

/** Press a key where the focus is, with what browsers do then: activate, submit, close a popover. */
export function press(document: Document, key: string, more: KeyboardEventInit = {}): void {
  const window = document.defaultView!;
  const at = (document.activeElement ?? document.body) as HTMLElement;
  const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  at.dispatchEvent(event);
  if (!event.defaultPrevented && at.isConnected) {
    const isText = at.matches("input:not([type=checkbox]):not([type=radio]), textarea");
    if (key === "Escape") document.querySelector<HTMLElement>("[popover][data-open]")?.hidePopover();
    else if (key === "Enter" && at.matches("button, a[href]")) at.click();
    else if (key === "Enter" && at.matches("input")) submit(at.closest("form"));
    else if (key.length === 1 && isText && !more.ctrlKey)
      fill(at as HTMLInputElement, (at as HTMLInputElement).value + key);
  }
  at.dispatchEvent(new window.KeyboardEvent("keyup", { key, bubbles: true, cancelable: true, ...more }));
}

/** What Enter does in a field of a form. */
function submit(form: HTMLFormElement | null): void {
  const button = form?.querySelector<HTMLElement>("button[type=submit]");
  if (button) button.click();
  else form?.requestSubmit();
}
