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

/** A text that is touched only when it is another one: the browser would lay it out again. */
export class Text {
  constructor(private readonly _write: (text: string) => void) {}

  get text(): string {
    return this._said;
  }

  set(text: string): void {
    if (text !== this._said) {
      this._said = text;
      this._write(text);
    }
  }

  /** The same, where the words take a while to find: they are asked for only if the key is new. */
  setFor(key: string, words: () => string): void {
    if (key !== this._key) {
      this._key = key;
      this.set(words());
    }
  }

  private _said = '';
  private _key: string | null = null;
}

/** Setting `hidden` to what it is already would cost the browser a look at all styles. */
export function hide(node: HTMLElement, isHidden: boolean): void {
  if (node.hidden !== isHidden) {
    node.hidden = isHidden;
  }
}

/** The text of an element. */
export function textOf(node: HTMLElement): Text {
  const data = node.appendChild(document.createTextNode(''));
  return new Text(text => (data.data = text));
}
