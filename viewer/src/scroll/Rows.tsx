/**
 * A list of any length, of which only the rows that are seen are in the document. All rows have the same height.
 *
 * A row stays where it is while others come and go: the padding above the rows takes the place of those that went. So the
 * browser draws only rows that come. A list that is scrolled sideways has the attribute `data-aside`.
 *
 *     <Rows count={1e7} rowHeight={18} label="Console" row={(n) => <div key={n} class={css["line"]}>{n}</div>} />
 */

import type { ComponentChildren, JSX, Ref } from "preact";
import { useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";

import css from "./Rows.module.css";
import { moved, type Scale, scaleOf, settled, type Where } from "./scale";

/**
 * Pixels above and below the window whose rows are drawn, too, and how many come and go at once: a few in each frame, since
 * many in one would take longer than a frame has.
 */
const AROUND = 480;
const STEP = 128;
/** Milliseconds after the last move at which the scroll bar is put to where it belongs. */
const SETTLED = 150;

export interface RowsHandle {
  /** Scroll to a row: to the top, to the middle, or no further than to see it. */
  show: (row: number, at?: "top" | "middle" | "nearest") => void;
  /** The first row that is seen, with its hidden part: 7.5 is row 7, half of it above the window. */
  first: () => number;
  /** How many rows fit into the window. */
  fit: () => number;
  /** Whether the last row is seen. */
  atEnd: () => boolean;
  /** The same rows stay in sight, though so many came (or went) above them. Call it before `count` changes. */
  shift: (rows: number) => void;
  readonly element: HTMLElement;
}

interface Props {
  readonly count: number;
  /** Pixels of a row; each one must be so high. */
  readonly rowHeight: number;
  /** Draws a row: the whole element, with its role and key. */
  readonly row: (index: number) => ComponentChildren;
  readonly label: string;
  readonly role?: "grid" | "log" | "list" | "listbox" | "treegrid" | "table";
  readonly class?: string | undefined;
  /** Stays above the rows: the head of a table. */
  readonly head?: ComponentChildren;
  /** Pixels of the head. */
  readonly headHeight?: number;
  /** Columns and rows as a reader of the screen should count them, and other attributes of the element. */
  readonly attributes?: Readonly<Record<`aria-${string}`, string | number>>;
  /** Called with the rows that are drawn, whenever they change: from `first` up to but not including `end`. */
  readonly onRange?: (first: number, end: number) => void;
  /** Called after each move, also by `show`, but not when rows come or go. */
  readonly onMove?: () => void;
  readonly handle?: Ref<RowsHandle>;
}

export function Rows(props: Props): JSX.Element {
  const { count, rowHeight, row, headHeight = 0, onRange } = props;
  const element = useRef<HTMLDivElement>(null);
  const where = useRef<Where>({ scrolled: 0, top: 0 });
  const settling = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [view, setView] = useState(0);
  const [, draw] = useState("");
  const latest = useRef(props);
  latest.current = props;

  const scale = scaleOf(count, rowHeight, Math.max(0, view - headHeight));
  const { top, scrolled } = where.current;
  const [first, end] = drawnAt(top, scale.view, rowHeight, count);

  /** Pixels of the window now, also before the first drawing. */
  const height = useCallback(
    () => Math.max(0, (element.current?.clientHeight ?? 0) - (latest.current.headHeight ?? 0)),
    [],
  );

  /** Where the list is now; drawn again only if that asks for other rows, or for another place of them. */
  const put = useCallback((next: Where, { view }: Scale, isMove: boolean) => {
    where.current = next;
    const { rowHeight, count, onMove } = latest.current;
    draw(`${drawnAt(next.top, view, rowHeight, count).join()} ${Math.round(next.scrolled - next.top)}`);
    if (isMove) onMove?.();
  }, []);

  const goTo = useCallback(
    (pixel: number, isMove = true) => {
      const scale = scaleOf(latest.current.count, latest.current.rowHeight, height());
      const next = settled(scale, pixel);
      put(next, scale, isMove);
      if (element.current) element.current.scrollTop = next.scrolled;
    },
    [height, put],
  );

  useLayoutEffect(() => {
    const shown = element.current!;
    const watch = new ResizeObserver(() => setView(shown.clientHeight));
    watch.observe(shown);
    setView(shown.clientHeight);
    return () => {
      watch.disconnect();
      clearTimeout(settling.current);
    };
  }, []);

  useLayoutEffect(() => {
    if (view) goTo(where.current.top, false); // the same rows, on a new scale
  }, [count, view, rowHeight, goTo]);

  useEffect(() => {
    if (view) onRange?.(first, end);
  }, [first, end, view, onRange]);

  useImperativeHandle(
    props.handle ?? null,
    () => ({
      show(index, at = "top") {
        const before = where.current.top;
        const start = index * rowHeight;
        const space = height() - rowHeight;
        if (at === "top") goTo(start);
        else if (at === "middle") goTo(start - space / 2);
        else if (start < before) goTo(start);
        else if (start > before + space) goTo(start - space);
      },
      first: () => where.current.top / rowHeight,
      fit: () => height() / rowHeight,
      atEnd: () => where.current.top + height() >= latest.current.count * rowHeight - rowHeight,
      shift(rows) {
        where.current = { ...where.current, top: Math.max(0, where.current.top + rows * rowHeight) };
      },
      element: element.current!,
    }),
    [rowHeight, goTo, height],
  );

  function onScroll(): void {
    const box = element.current;
    if (!box) return; // a scroll is told late, when the rows may be gone
    box.toggleAttribute("data-aside", box.scrollLeft > 0);
    const now = box.scrollTop;
    if (Math.abs(now - where.current.scrolled) < 1) return; // it was us
    put(moved(scale, where.current, now), scale, true);
    clearTimeout(settling.current);
    settling.current = setTimeout(() => goTo(where.current.top, false), SETTLED);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.target !== element.current || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== "Home" && event.key !== "End") return;
    event.preventDefault(); // the browser would go there in steps, some of them small
    goTo(event.key === "Home" ? 0 : count * rowHeight);
  }

  const drawn: ComponentChildren[] = [];
  if (view) for (let index = first; index < end; index++) drawn.push(row(index));
  const place = scrolled - top + first * rowHeight;
  return (
    <div
      {...props.attributes}
      ref={element}
      class={`${css["rows"]} ${props.class ?? ""}`}
      role={props.role ?? "list"}
      aria-label={props.label}
      tabIndex={0}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      {props.head}
      <div class={css["space"]} style={{ height: `${scale.height}px` }}>
        <div class={css["drawn"]} style={{ paddingTop: `${place}px` }}>
          {drawn}
        </div>
      </div>
    </div>
  );
}

/** The rows to draw if this pixel is at the top of a window: from the first up to but not including the second. */
function drawnAt(pixel: number, view: number, rowHeight: number, count: number): [number, number] {
  const [around, step] = [Math.ceil(AROUND / rowHeight), Math.ceil(STEP / rowHeight)];
  const [above, below] = [Math.floor(pixel / rowHeight / step), Math.ceil((pixel + view) / rowHeight / step)];
  return [Math.max(0, above * step - around), Math.min(count, below * step + around)];
}
