/**
 * A picture as large as the window: wheel, keys and pinch zoom it, the pointer moves it, arrows lead to its neighbours.
 * An HTML report is shown in its frame instead.
 */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { kindOf, nameOf, placeOfFile } from "../api/files";
import { Paper } from "../frame/Paper";
import { type Binding, useKeys } from "../hooks/keys";
import css from "./Lightbox.module.css";
import { Picture } from "./Picture";
import { FITTED, type View, zoomed } from "./zoom";

interface Props {
  readonly url: string;
  readonly title: string;
  /** More about it, such as the iteration. */
  readonly said: string;
  /** To the neighbours: the iterations before and after, the variants above and below. */
  readonly onMove?: (to: "before" | "after" | "up" | "down") => void;
  readonly onClose: () => void;
}

const STEP = 1.4;

export function Lightbox(props: Props): JSX.Element {
  const { url, title, said, onMove, onClose } = props;
  const element = useRef<HTMLDialogElement>(null);
  const [known, setKnown] = useState({ url, view: FITTED });
  const view = known.url === url ? known.view : FITTED; // another picture is fitted anew
  const onView = (change: (before: View) => View): void =>
    setKnown((before) => ({ url, view: change(before.url === url ? before.view : FITTED) }));
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const zoomBy = (factor: number): void => onView((before) => zoomed(before, factor, 0, 0));
  const fit = (): void => onView(() => FITTED);
  useKeys("Image", [...(onMove ? moves(onMove) : []), ...zooms(zoomBy, fit)], { inDialog: true });
  const kind = kindOf(url);
  return (
    <dialog ref={element} class={css["box"]} aria-label={title} onClose={onClose}>
      <header class={css["head"]}>
        <h2>{title}</h2>
        <span role="status">{said}</span>
        <span class={css["space"]} />
        {kind === "image" && (
          <>
            <button type="button" aria-label="Zoom out" onClick={() => zoomBy(1 / STEP)}>
              −
            </button>
            <button type="button" title="Fit the window" onClick={fit}>
              {Math.round(view.zoom * 100)} %
            </button>
            <button type="button" aria-label="Zoom in" onClick={() => zoomBy(STEP)}>
              +
            </button>
          </>
        )}
        {onMove && (
          <>
            <button type="button" aria-label="Iteration before" onClick={() => onMove("before")}>
              ‹
            </button>
            <button type="button" aria-label="Iteration after" onClick={() => onMove("after")}>
              ›
            </button>
          </>
        )}
        <a href={placeOfFile(url) ?? "#"} download={nameOf(url)}>
          Download
        </a>
        <button type="button" aria-label="Close" onClick={() => element.current?.close()}>
          ×
        </button>
      </header>
      {kind === "html" ? (
        <div class={css["stage"]}>
          <Paper url={url} name={title} onEscape={() => element.current?.close()} />
        </div>
      ) : (
        <Stage view={view} onView={onView} url={url} name={[title, said].filter(Boolean).join(", ")} />
      )}
    </dialog>
  );
}

function moves(onMove: NonNullable<Props["onMove"]>): Binding[] {
  return [
    {
      keys: ["ArrowLeft", "ArrowRight"],
      shown: "← →",
      does: "Iteration before or after",
      run: (key) => onMove(key === "ArrowLeft" ? "before" : "after"),
    },
    {
      keys: ["ArrowUp", "ArrowDown"],
      shown: "↑ ↓",
      does: "Variant before or after",
      run: (key) => onMove(key === "ArrowUp" ? "up" : "down"),
    },
  ];
}

function zooms(zoomBy: (factor: number) => void, fit: () => void): Binding[] {
  return [
    { keys: ["+", "=", "-"], shown: "+ −", does: "Zoom", run: (key) => zoomBy(key === "-" ? 1 / STEP : STEP) },
    { keys: ["0"], does: "Fit the window", run: fit },
  ];
}

interface StageProps {
  view: View;
  onView: (change: (before: View) => View) => void;
  url: string;
  name: string;
}

function Stage({ view, onView, url, name }: StageProps): JSX.Element {
  const stage = useRef<HTMLDivElement>(null);
  const held = useRef(new Map<number, PointerEvent>());
  const latest = useRef(onView);
  latest.current = onView;
  useEffect(() => {
    // Not by JSX: a listener must say that it is not passive to keep the page from scrolling.
    const element = stage.current!;
    function onWheel(event: WheelEvent): void {
      event.preventDefault();
      const { x, y } = fromMiddle(element, event);
      latest.current((before) => zoomed(before, Math.exp(-event.deltaY / 300), x, y));
    }
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);
  function onPointerMove(event: PointerEvent): void {
    const before = held.current.get(event.pointerId);
    if (!before) return;
    const other = [...held.current.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    held.current.set(event.pointerId, event);
    if (!other)
      return onView((now) => ({
        ...now,
        x: now.x + event.clientX - before.clientX,
        y: now.y + event.clientY - before.clientY,
      }));
    const { x, y } = fromMiddle(stage.current!, event);
    onView((now) => zoomed(now, distance(event, other) / Math.max(distance(before, other), 1), x, y));
  }
  const release = (event: PointerEvent): void => void held.current.delete(event.pointerId);
  return (
    <div
      ref={stage}
      class={css["stage"]}
      data-zoomed={view.zoom > 1}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        held.current.set(event.pointerId, event);
      }}
      onPointerMove={onPointerMove}
      onPointerUp={release}
      onPointerCancel={release}
      onDblClick={() => onView((before) => (before.zoom > 1 ? FITTED : zoomed(before, 3, 0, 0)))}
    >
      <div class={css["moved"]} style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.zoom})` }}>
        <Picture url={url} name={name} />
      </div>
    </div>
  );
}

function fromMiddle(element: HTMLElement, event: MouseEvent): { x: number; y: number } {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: event.clientX - left - width / 2, y: event.clientY - top - height / 2 };
}

function distance(one: PointerEvent, other: PointerEvent): number {
  return Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
}
