/**
 * Colours of terminals: text with escape sequences → pieces of plain text, each in one style. Pure.
 *
 * The sixteen named colours are numbers, so that each theme has its own of them. The others are `#rrggbb`. What is not
 * about colours (moves of the cursor, titles, links) is dropped, and control characters become the signs that Unicode has
 * for them, such as ␀.
 */

export interface Style {
  /** 0 to 15, "#rrggbb", or null for the usual colour. */
  readonly fore: number | string | null;
  readonly back: number | string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  readonly inverse: boolean;
}

export const PLAIN: Style = {
  fore: null,
  back: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

export interface Piece {
  readonly text: string;
  readonly style: Style;
}

/** CSI sequences; OSC, DCS and the like up to their end; other escapes of two or three characters. */
const SEQUENCE =
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?/g;
/** Control characters but tab and line feed. */
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** The pieces of a text that begins in a style, and the style in which it ends. */
export function pieces(text: string, before: Style = PLAIN): { pieces: Piece[]; after: Style } {
  if (!/[\x1b\x80-\x9f]/.test(text))
    return { pieces: text ? [{ text: visible(text), style: before }] : [], after: before };
  const found: Piece[] = [];
  let style = before;
  let end = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    const plain = text.slice(end, match.index);
    if (plain) found.push({ text: visible(plain), style });
    end = match.index + match[0].length;
    if (match[2] === "m") style = changed(style, match[1] ?? "");
  }
  if (end < text.length) found.push({ text: visible(text.slice(end)), style });
  return { pieces: found, after: style };
}

/** The text without its escape sequences. */
export function plain(text: string): string {
  return visible(text.replace(SEQUENCE, ""));
}

function visible(text: string): string {
  return text.replace(CONTROL, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : "�";
  });
}

/** The style after a sequence of "Select Graphic Rendition": "1;31" is bold and red. */
function changed(before: Style, parameters: string): Style {
  let style = { ...before };
  const codes = parameters.replaceAll(":", ";").split(";").map(Number);
  for (let n = 0; n < codes.length; n++) {
    const code = codes[n]!;
    if (code === 0) style = { ...PLAIN };
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 29) style.strike = false;
    else if (code >= 30 && code <= 37) style.fore = code - 30;
    else if (code >= 90 && code <= 97) style.fore = code - 82;
    else if (code >= 40 && code <= 47) style.back = code - 40;
    else if (code >= 100 && code <= 107) style.back = code - 92;
    else if (code === 39) style.fore = null;
    else if (code === 49) style.back = null;
    else if (code === 38 || code === 48) {
      const [colour, taken] = extended(codes.slice(n + 1));
      n += taken;
      if (colour !== null) style[code === 38 ? "fore" : "back"] = colour;
    }
  }
  return style;
}

/** The colour that follows 38 or 48, and how many codes it has: `5;n` is one of 256, `2;r;g;b` any. */
function extended(codes: readonly number[]): [number | string | null, number] {
  const [kind, a = 0, b = 0, c = 0] = codes;
  if (kind === 5) return [one(a), 2];
  if (kind === 2) return [hex(a, b, c), 4];
  return [null, 0];
}

/** A colour of 256: 16 named ones, a cube of 6 × 6 × 6, and 24 greys. */
function one(n: number): number | string | null {
  if (!(n >= 0 && n <= 255)) return null;
  if (n < 16) return n;
  if (n >= 232) return hex(8 + 10 * (n - 232), 8 + 10 * (n - 232), 8 + 10 * (n - 232));
  const level = (step: number): number => (step ? 55 + 40 * step : 0);
  return hex(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6));
}

function hex(...parts: number[]): string {
  return `#${parts
    .map((part) =>
      Math.min(255, Math.max(0, part || 0))
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}
