/**
 * For `ref={focused}`: the field has the focus as soon as it is there.
 *
 * The attribute alone is not enough: a browser heeds it once in a document. A dialog heeds it each time that it opens.
 */
export function focused(field: HTMLElement | null): void {
  if (!field) return;
  field.autofocus = true;
  field.focus();
}
