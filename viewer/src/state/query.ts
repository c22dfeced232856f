/** Parameters of a query. Pure. */

/** Parameters for a query: a list is repeated, null and "" leave a parameter out. */
export type Parameters = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

/** The query with some parameters changed. */
export function changed(given: URLSearchParams, parameters: Parameters): URLSearchParams {
  const result = new URLSearchParams(given);
  for (const [name, value] of Object.entries(parameters)) {
    result.delete(name);
    if (Array.isArray(value)) for (const one of value) result.append(name, String(one));
    else if (value !== null && value !== undefined && value !== "" && value !== false) {
      result.set(name, value === true ? "1" : String(value));
    }
  }
  return result;
}
