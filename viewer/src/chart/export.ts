/** A chart as a picture, and its points as a file. */

import { get } from "../api/client";
import { here } from "../state/address";
import { dark } from "../state/session";
import { attempt, say } from "../state/toasts";
import type { MenuItem } from "../ui/Menu";
import type { Drawn } from "./drawer";
import type { Line } from "./line";
import type { ChartSource, ChartSpec } from "./source";
import { svgOf } from "./svg";
import { parametersOf, type View } from "./view";

export function exportsOf(
  spec: ChartSpec,
  lines: readonly Line[],
  drawn: Drawn | null,
  source: ChartSource,
  view: View,
): readonly MenuItem[] {
  const name = spec.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "chart";
  const why = drawn ? null : "it has no points";
  return [
    { label: "Picture (PNG)", why, run: () => drawn && savePng(drawn, name) },
    { label: "Picture (SVG)", why, run: () => drawn && saveSvg(drawn, lines, spec, name) },
    {
      label: "All points (CSV)",
      run: () => open(source.file(spec.metric, spec.variants, "csv"), "_blank", "noopener"),
    },
    {
      label: "All points (Parquet)",
      run: () => void saveAnswer(source.file(spec.metric, spec.variants, "parquet"), `${name}.parquet`),
    },
    { label: "Copy address", run: () => void copyAddress({ ...view, full: spec.id }) },
  ];
}

/** The canvas, on the colour of the page. */
function savePng({ canvas }: Drawn, name: string): void {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d")!;
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--raised");
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => blob && saveBlob(blob, `${name}.png`));
}

function saveSvg(drawn: Drawn, lines: readonly Line[], spec: ChartSpec, name: string): void {
  const style = getComputedStyle(document.documentElement);
  const text = svgOf(lines, drawn.plane(), {
    title: spec.title,
    dark: dark.peek(),
    page: style.getPropertyValue("--raised"),
    text: style.getPropertyValue("--text"),
    grid: style.getPropertyValue("--line"),
    pixels: devicePixelRatio,
    splits: drawn.splits(),
  });
  saveBlob(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Save what the server answers, or say why it does not: a link would save nothing, in silence. */
function saveAnswer(address: string, name: string): Promise<boolean> {
  return attempt(async () => saveBlob(await (await get(address)).blob(), name));
}

function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  saveFile(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function saveFile(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

/** The address of this page, with all that is seen of the chart. */
async function copyAddress(view: View): Promise<void> {
  const address = new URL(here.value, location.origin);
  for (const [parameter, value] of Object.entries(parametersOf(view))) {
    address.searchParams.delete(parameter);
    if (Array.isArray(value)) for (const one of value) address.searchParams.append(parameter, String(one));
    else if (value !== null && value !== "" && value !== false)
      address.searchParams.set(parameter, value === true ? "1" : String(value));
  }
  try {
    await navigator.clipboard.writeText(address.href);
    say("The address is copied");
  } catch {
    say(`The browser does not let pages copy here. The address is ${address.href}`, { bad: true });
  }
}
