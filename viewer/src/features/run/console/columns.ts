/** What is shown of each line. */
export interface Columns {
  readonly numbers: boolean;
  readonly times: boolean;
  readonly folded: boolean;
  readonly wrapped: boolean;
}
