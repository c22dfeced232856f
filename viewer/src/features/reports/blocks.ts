/**
 * Reads Markdown into blocks: headings, paragraphs, lists, tables, quotes, code, rules, and embedded frames. Pure.
 *
 * It knows what people write in reports and comments (CommonMark's usual forms, tables, task lists, `~~strike~~`), and
 * takes all else as text. HTML is text, too, but for `<br>`, `<img src alt>`, and `<iframe src>`, which is how ClearML's
 * reports embed plots. No markup of a user's becomes markup of the page: `Markdown.tsx` makes elements of blocks.
 */

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "strong" | "em" | "del"; readonly inlines: readonly Inline[] }
  | { readonly kind: "link"; readonly href: string; readonly inlines: readonly Inline[] }
  | { readonly kind: "image"; readonly src: string; readonly alt: string }
  | { readonly kind: "break" };

export type Align = "left" | "right" | "center" | null;

export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly inlines: readonly Inline[] }
  | { readonly kind: "paragraph"; readonly inlines: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "quote"; readonly blocks: readonly Block[] }
  | { readonly kind: "list"; readonly start: number | null; readonly items: readonly Item[] }
  | {
      readonly kind: "table";
      readonly aligns: readonly Align[];
      readonly heads: readonly (readonly Inline[])[];
      readonly rows: readonly (readonly (readonly Inline[])[])[];
    }
  | { readonly kind: "rule" }
  | { readonly kind: "embed"; readonly src: string; readonly height: number | null };

export interface Item {
  /** Of a task list; null in other lists. */
  readonly done: boolean | null;
  readonly blocks: readonly Block[];
}

/** Quotes and lists inside of each other, and emphasis inside of emphasis, may be so deep. */
const DEEPEST = 12;
/** Longer paragraphs are text only: looking for pairs of marks takes the square of the time. */
const LONGEST = 10_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?! )|(?=\s*$)| (?= ))/;
const FRAME = /^\s*<iframe\b([^>]{0,4000})>(?:\s*<\/iframe>)?\s*$/i;
const SPLIT = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

export function blocksOf(text: string, depth = 0): Block[] {
  return readBlocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), depth);
}

function readBlocks(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [block, next] = depth < DEEPEST ? readBlock(lines, at, depth) : paragraph(lines, at);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

/** The block that begins at a line, and the line behind it. */
function readBlock(lines: readonly string[], at: number, depth: number): [Block | null, number] {
  const line = lines[at]!;
  const heading = HEADING.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1]!.length, inlines: inlinesOf(heading[2] ?? "") }, at + 1];
  if (FENCE.test(line)) return fenced(lines, at);
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (QUOTE.test(line)) return quote(lines, at, depth);
  if (ITEM.test(line)) return list(lines, at, depth);
  if (/^ {4}/.test(line)) return indented(lines, at);
  if (line.includes("|") && SPLIT.test(lines[at + 1] ?? "") && lines[at + 1]!.includes("-")) return table(lines, at);
  const frame = FRAME.exec(line);
  if (frame) return [embed(frame[1]!), at + 1];
  if (/^\s*<!--/.test(line)) return comment(lines, at);
  return paragraph(lines, at);
}

function paragraph(lines: readonly string[], at: number): [Block, number] {
  let end = at + 1;
  while (end < lines.length && lines[end]!.trim() && !begins(lines[end]!)) {
    const under = /^ {0,3}(=+|-+)\s*$/.exec(lines[end]!);
    if (under) {
      const inlines = inlinesOf(lines.slice(at, end).join("\n"));
      return [{ kind: "heading", level: under[1]![0] === "=" ? 1 : 2, inlines }, end + 1];
    }
    end += 1;
  }
  return [
    {
      kind: "paragraph",
      inlines: inlinesOf(
        lines
          .slice(at, end)
          .map((line) => line.trimStart())
          .join("\n"),
      ),
    },
    end,
  ];
}

/** Whether a line ends a paragraph before it. "---" below a paragraph makes it a heading, so that is not here. */
function begins(line: string): boolean {
  if (/^ {0,3}(=+|-+)\s*$/.test(line)) return false;
  return (
    [FENCE, HEADING, RULE, QUOTE, FRAME].some((pattern) => pattern.test(line)) || /^ {0,3}([-*+]|1[.)]) +\S/.test(line)
  );
}

function fenced(lines: readonly string[], at: number): [Block, number] {
  const [, mark = "```", language = ""] = FENCE.exec(lines[at]!) ?? [];
  let end = at + 1;
  const closes = (line: string): boolean => line.trim().startsWith(mark) && !line.trim().replaceAll(mark[0]!, "");
  while (end < lines.length && !closes(lines[end]!)) end += 1;
  return [{ kind: "code", language, text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function indented(lines: readonly string[], at: number): [Block, number] {
  let end = at;
  while (end < lines.length && (/^ {4}/.test(lines[end]!) || !lines[end]!.trim())) end += 1;
  const text = lines
    .slice(at, end)
    .map((line) => line.slice(4))
    .join("\n");
  return [{ kind: "code", language: "", text: text.trimEnd() }, end];
}

function comment(lines: readonly string[], at: number): [null, number] {
  let end = at;
  while (end < lines.length && !lines[end]!.includes("-->")) end += 1;
  return [null, end + 1];
}

function quote(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at;
  while (end < lines.length && (QUOTE.test(lines[end]!) || (lines[end]!.trim() && !begins(lines[end]!)))) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [{ kind: "quote", blocks: readBlocks(inside, depth + 1) }, end];
}

function list(lines: readonly string[], at: number, depth: number): [Block, number] {
  const mark = ITEM.exec(lines[at]!)![2]!;
  const ordered = /\d/.test(mark);
  const items: Item[] = [];
  let end = at;
  while (end < lines.length) {
    const first = ITEM.exec(lines[end]!);
    if (!first || /\d/.test(first[2]!) !== ordered || first[2]!.at(-1) !== mark.at(-1) || RULE.test(lines[end]!)) break;
    const indent = Math.max(first[0].length, first[1]!.length + first[2]!.length + 1);
    const inside = [lines[end]!.slice(first[0].length)];
    end += 1;
    while (end < lines.length) {
      const line = lines[end]!;
      const blank = !line.trim();
      const deep = line.search(/\S/) >= indent;
      if (blank && !((lines[end + 1] ?? "").search(/\S/) >= indent)) break;
      if (!blank && !deep && (ITEM.test(line) || begins(line) || !inside.at(-1)!.trim())) break;
      inside.push(line.slice(Math.min(indent, Math.max(line.search(/\S/), 0))));
      end += 1;
    }
    items.push(item(inside, depth));
    while (end < lines.length && !lines[end]!.trim() && ITEM.test(lines[end + 1] ?? "")) end += 1;
  }
  return [{ kind: "list", start: ordered ? parseInt(mark, 10) : null, items }, end];
}

function item(lines: readonly string[], depth: number): Item {
  const box = /^\[([ xX])\]\s+/.exec(lines[0] ?? "");
  const inside = box ? [lines[0]!.slice(box[0].length), ...lines.slice(1)] : lines;
  return { done: box ? box[1] !== " " : null, blocks: readBlocks(inside, depth + 1) };
}

function table(lines: readonly string[], at: number): [Block, number] {
  const aligns = cellsOf(lines[at + 1]!).map((cell): Align => {
    const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
    return left && right ? "center" : right ? "right" : left ? "left" : null;
  });
  let end = at + 2;
  while (end < lines.length && lines[end]!.includes("|") && lines[end]!.trim()) end += 1;
  const row = (line: string): Inline[][] => {
    const cells = cellsOf(line);
    return aligns.map((_, column) => inlinesOf(cells[column] ?? ""));
  };
  return [{ kind: "table", aligns, heads: row(lines[at]!), rows: lines.slice(at + 2, end).map(row) }, end];
}

/** The cells of a table's row; `\|` is no border. */
function cellsOf(line: string): string[] {
  const inside = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
}

function embed(attributes: string): Block | null {
  const src = attributeOf(attributes, "src");
  const height = Number.parseInt(attributeOf(attributes, "height"), 10);
  return src ? { kind: "embed", src, height: height > 0 ? height : null } : null;
}

function attributeOf(attributes: string, name: string): string {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i").exec(attributes);
  return (found?.[1] ?? found?.[2] ?? found?.[3] ?? "").replaceAll("&amp;", "&");
}

/** What a text says with its marks. */
export function inlinesOf(text: string, depth = 0): Inline[] {
  if (text.length > LONGEST || depth > DEEPEST) return [{ kind: "text", text }];
  const result: Inline[] = [];
  let plain = "";
  let at = 0;
  const add = (inline: Inline): void => {
    if (plain) result.push({ kind: "text", text: plain });
    plain = "";
    result.push(inline);
  };
  while (at < text.length) {
    const found = readInline(text, at, depth);
    if (!found) {
      plain += text[at];
      at += 1;
    } else {
      if (typeof found[0] === "string") plain += found[0];
      else add(found[0]);
      at = found[1];
    }
  }
  if (plain) result.push({ kind: "text", text: plain });
  return result;
}

/** The element that begins at a place, or text in its place, and where it ends; null if nothing begins there. */
function readInline(text: string, at: number, depth: number): [Inline | string, number] | null {
  switch (text[at]) {
    case "\\":
      if (text[at + 1] === "\n") return [{ kind: "break" }, at + 2];
      return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? [text[at + 1]!, at + 2] : null;
    case "\n":
      return [" ", at + 1];
    case " ":
      return text.startsWith("  \n", at) ? [{ kind: "break" }, at + 3] : null;
    case "`":
      return code(text, at);
    case "!":
      return text[at + 1] === "[" ? bracket(text, at + 1, true, depth) : null;
    case "[":
      return bracket(text, at, false, depth);
    case "<":
      return angle(text, at);
    case "*":
    case "_":
    case "~":
      return emphasis(text, at, depth);
    case "h":
      return bare(text, at);
    default:
      return null;
  }
}

function code(text: string, at: number): [Inline | string, number] {
  let mark = 1;
  while (text[at + mark] === "`") mark += 1;
  const fence = "`".repeat(mark);
  let end = text.indexOf(fence, at + mark);
  while (end >= 0 && text[end + mark] === "`") {
    while (text[end] === "`") end += 1;
    end = text.indexOf(fence, end);
  }
  if (end < 0) return [fence, at + mark];
  const inside = text.slice(at + mark, end).replaceAll("\n", " ");
  return [{ kind: "code", text: /^ .*\S.* $/.test(inside) ? inside.slice(1, -1) : inside }, end + mark];
}

/** `[text](address "title")`, or with `!` before it a picture. */
function bracket(text: string, at: number, image: boolean, depth: number): [Inline, number] | null {
  const end = closing(text, at, "[", "]");
  if (end < 0 || text[end + 1] !== "(") return null;
  const stop = closing(text, end + 1, "(", ")");
  if (stop < 0) return null;
  const inside = text.slice(end + 2, stop).trim();
  const address = /^<([^<>\n]*)>/.exec(inside)?.[1] ?? /^[^\s"']*/.exec(inside)?.[0] ?? "";
  const label = text.slice(at + 1, end);
  if (image) return [{ kind: "image", src: address, alt: label }, stop + 1];
  return [{ kind: "link", href: address, inlines: inlinesOf(label, depth + 1) }, stop + 1];
}

/** Where the bracket that opens at a place is closed; -1 if it is not. */
function closing(text: string, at: number, open: string, close: string): number {
  let depth = 0;
  for (let place = at; place < text.length && place < at + 3000; place++) {
    if (text[place] === "\\") place += 1;
    else if (text[place] === open) depth += 1;
    else if (text[place] === close && --depth === 0) return place;
  }
  return -1;
}

function angle(text: string, at: number): [Inline | string, number] | null {
  const rest = text.slice(at, at + 2000);
  const address = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(rest);
  if (address)
    return [
      { kind: "link", href: address[1]!, inlines: [{ kind: "text", text: address[1]! }] },
      at + address[0].length,
    ];
  const line = /^<br\s*\/?>/i.exec(rest);
  if (line) return [{ kind: "break" }, at + line[0].length];
  const image = /^<img\b([^<>]*)>/i.exec(rest);
  if (!image) return null;
  return [
    { kind: "image", src: attributeOf(image[1]!, "src"), alt: attributeOf(image[1]!, "alt") },
    at + image[0].length,
  ];
}

function emphasis(text: string, at: number, depth: number): [Inline | string, number] | null {
  const mark = text[at]!;
  const double = text[at + 1] === mark;
  if (mark === "~" && !double) return null;
  const fence = double ? mark + mark : mark;
  const start = at + fence.length;
  const word = (one: string | undefined): boolean => one !== undefined && /[\p{L}\p{N}]/u.test(one);
  if (!text[start]?.trim() || (mark === "_" && word(text[at - 1]))) return [fence, start];
  for (let end = text.indexOf(fence, start + 1); end > 0; end = text.indexOf(fence, end + 1)) {
    if (!double && text[end + 1] === mark) {
      end += 1; // a `**` inside
      continue;
    }
    if (!text[end - 1]!.trim() || text[end - 1] === "\\") continue;
    if (mark === "_" && word(text[end + fence.length])) continue;
    const kind = mark === "~" ? "del" : double ? "strong" : "em";
    return [{ kind, inlines: inlinesOf(text.slice(start, end), depth + 1) }, end + fence.length];
  }
  return [fence, start];
}

/** An address that stands in the text without any mark. */
function bare(text: string, at: number): [Inline, number] | null {
  if (/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) return null;
  const found = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?*_)\]]/i.exec(text.slice(at, at + 2000));
  return found
    ? [{ kind: "link", href: found[0], inlines: [{ kind: "text", text: found[0] }] }, at + found[0].length]
    : null;
}

/** An address that a link may lead to; null for all that could run something. */
export function safeAddress(address: string): string | null {
  if (/^(https?:\/\/|mailto:)/i.test(address)) return address;
  return /^(\/(?!\/)|#|\?|\.{0,2}\/?[\w][^:]*$)/.test(address) && !/[\u0000-\u001f\\]/.test(address) ? address : null;
}
