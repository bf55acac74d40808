/** Append a new element. */
export function element<Tag extends keyof HTMLElementTagNameMap = 'div'>(
  parent: Element,
  className: string,
  tag: Tag = 'div' as Tag,
  attributes: Record<string, string> = {}
): HTMLElementTagNameMap[Tag] {
  const node = parent.appendChild(document.createElement(tag));
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  return node;
}
