/** Make an element with a class. */
export function element<Tag extends keyof HTMLElementTagNameMap = 'div'>(
  parent: HTMLElement,
  name: string,
  tag: Tag = 'div' as Tag
): HTMLElementTagNameMap[Tag] {
  const node = parent.appendChild(document.createElement(tag));
  node.className = name;
  return node;
}
