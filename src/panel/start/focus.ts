/**
 * Hand the focus on to the first control of a kind before the one that has it goes.
 */
export function focusFirst(
  container: HTMLElement | null,
  selector: 'button' | 'input'
): void {
  container?.querySelector<HTMLElement>(`${selector}:enabled`)?.focus();
}
