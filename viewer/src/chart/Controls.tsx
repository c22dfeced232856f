/** The controls above charts: which names, which axis, how smooth, which scales, how large. */

import type { ComponentChildren, JSX } from "preact";

import { useTyped } from "../hooks/typed";
import { nameExpressionOf } from "../lib/expressions";
import css from "./Controls.module.css";
import { SMOOTHINGS, smoothingOf, textOfSmoothing } from "./smoothing";
import type { AxisChoice, View } from "./view";

export interface AxisOption {
  readonly label: string;
  readonly axis: AxisChoice;
}

export const AXES: readonly AxisOption[] = [
  { label: "Iteration", axis: "iter" },
  { label: "Time since start", axis: "relative" },
  { label: "Time", axis: "timestamp" },
];

/** How large charts are. */
export type Size = "small" | "medium" | "large";

interface Props {
  readonly view: View;
  readonly onView: (change: Partial<View>, push: boolean) => void;
  readonly axes: readonly AxisOption[];
  readonly size: Size;
  readonly onSize: (size: Size) => void;
  readonly children?: ComponentChildren;
}

export function Controls({ view, onView, axes, size, onSize, children }: Props): JSX.Element {
  const axis = JSON.stringify(view.axis);
  const known = axes.some((one) => JSON.stringify(one.axis) === axis);
  return (
    <div class={css["controls"]} role="group" aria-label="How charts are shown">
      <Find find={view.find} onFind={(find) => onView({ find }, false)} />
      <label>
        <span>x</span>
        <select
          aria-label="Horizontal axis"
          value={axis}
          onChange={(event) => onView({ axis: JSON.parse(event.currentTarget.value) as AxisChoice, range: null }, true)}
        >
          {axes.map((one) => (
            <option key={one.label} value={JSON.stringify(one.axis)}>
              {one.label}
            </option>
          ))}
          {!known && <option value={axis}>Another curve</option>}
        </select>
      </label>
      <Smooth smooth={view.smooth} onSmooth={(smooth, push) => onView({ smooth }, push)} />
      <Toggle on={view.logY} set={(logY) => onView({ logY, logX: view.logX }, false)}>
        log y
      </Toggle>
      <Toggle on={view.logX} set={(logX) => onView({ logX, logY: view.logY, range: null }, false)}>
        log x
      </Toggle>
      <Toggle on={view.trimmed} set={(trimmed) => onView({ trimmed }, false)}>
        without outliers
      </Toggle>
      <select aria-label="Size of charts" value={size} onChange={(event) => onSize(event.currentTarget.value as Size)}>
        <option value="small">Small</option>
        <option value="medium">Medium</option>
        <option value="large">Large</option>
      </select>
      {children}
      {view.range && (
        <button type="button" onClick={() => onView({ range: null }, true)}>
          Show all of x
        </button>
      )}
    </div>
  );
}

function Find({ find, onFind }: { find: string; onFind: (find: string) => void }): JSX.Element {
  const { typed, type } = useTyped(find, onFind);
  const isValid = nameExpressionOf(typed) !== null;
  return (
    <input
      type="search"
      class={css["find"]}
      placeholder="Names (regular expression)"
      aria-label="Find charts by name, as a regular expression"
      aria-invalid={!isValid}
      title={isValid ? "" : "Not a valid expression: names that contain it are shown"}
      value={typed}
      onInput={(event) => type(event.currentTarget.value)}
    />
  );
}

function Smooth({
  smooth,
  onSmooth,
}: {
  smooth: string;
  onSmooth: (smooth: string, push: boolean) => void;
}): JSX.Element {
  const { typed, type } = useTyped(smooth, (moved) => onSmooth(moved, false));
  const { kind, amount } = smoothingOf(typed);
  const { slider } = kind;
  return (
    <label>
      <span>Smooth</span>
      <select
        aria-label="Smoothing"
        value={kind.name}
        onChange={(event) => {
          const chosen = SMOOTHINGS.find(({ name }) => name === event.currentTarget.value)!;
          onSmooth(textOfSmoothing(chosen, chosen.slider?.usual ?? 0), true);
        }}
      >
        {SMOOTHINGS.map(({ name, label }) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      {slider && (
        <>
          <input
            type="range"
            aria-label="How smooth"
            min={0}
            max={slider.steps}
            value={slider.toStep(amount)}
            onInput={(event) => type(textOfSmoothing(kind, slider.ofStep(Number(event.currentTarget.value))))}
          />
          <output>{amount}</output>
        </>
      )}
    </label>
  );
}

function Toggle({
  on,
  set,
  children,
}: {
  on: boolean;
  set: (on: boolean) => void;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <button type="button" class={css["toggle"]} aria-pressed={on} onClick={() => set(!on)}>
      {children}
    </button>
  );
}
