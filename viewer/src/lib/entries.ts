/** Moving by keys in a list of entries, such as a menu or results of a search. Pure. */

/** Where the focus goes in a list of entries on a key, or null if the key does not move it. */
export function nextEntry(key: string, at: number, labels: readonly string[]): number | null {
  const count = labels.length;
  if (!count) return null;
  if (key === "ArrowDown") return (at + 1) % count;
  if (key === "ArrowUp") return (at - 1 + count) % count;
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (key.length !== 1 || key === " ") return null;
  const wanted = key.toLowerCase();
  for (let step = 1; step <= count; step++) {
    const next = (Math.max(at, 0) + step) % count;
    if (labels[next]?.toLowerCase().startsWith(wanted)) return next;
  }
  return null;
}
