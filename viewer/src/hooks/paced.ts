/** Does something after changes that come at any rate: at once after the first, and seldom enough after the others. */

/**
 * A function that has `run` called soon, but at least `pause` milliseconds after its last call, and not while the page is
 * hidden. `stop` forgets a call that waits.
 */
export function paced(run: () => void, pause: number): { (): void; readonly stop: () => void } {
  let last = -Infinity;
  let timer: ReturnType<typeof setTimeout> | undefined;
  function due(): void {
    if (document.hidden) {
      timer = setTimeout(due, pause);
      return;
    }
    timer = undefined;
    last = Date.now();
    run();
  }
  function soon(): void {
    timer ??= setTimeout(due, Math.max(0, last + pause - Date.now()));
  }
  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
  }
  return Object.assign(soon, { stop });
}
