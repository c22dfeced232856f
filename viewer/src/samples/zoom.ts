/** How a picture lies in a window: zoomed about its middle, then moved by pixels. Pure. */

export interface View {
  readonly zoom: number;
  readonly x: number;
  readonly y: number;
}

/** The picture as large as fits. */
export const FITTED: View = { zoom: 1, x: 0, y: 0 };
const MOST_ZOOM = 40;

/** Zoomed so that the point that lies `x`, `y` from the middle of the window stays where it is. */
export function zoomed(view: View, factor: number, x: number, y: number): View {
  const zoom = Math.min(Math.max(view.zoom * factor, 1), MOST_ZOOM);
  if (zoom === 1) return FITTED;
  const grown = zoom / view.zoom;
  return { zoom, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
}
