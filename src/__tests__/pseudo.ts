import { nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';

const plain = nullTranslator.load('');
/** What is left of a number with its unit, such as `%1 min %2 s` or `< 1 s`, when these are taken out. */
const UNITS = /%\d|< 1|\b(s|min|h|d|W|MHz|GiB|MiB|GB|MB)\b|°C|[%/\s]/g;

/** Puts each message into brackets; numbers with their units are part of one. */
function wrap(msgid: string, text: string): string {
  return msgid.replace(UNITS, '') ? `⟦${text}⟧` : text;
}

/** A language in which each message is in brackets. */
export const pseudo: TranslationBundle = Object.assign(Object.create(plain), {
  __: (msgid: string, ...args: unknown[]) =>
    wrap(msgid, plain.__(msgid, ...args)),
  _n: (one: string, many: string, count: number, ...args: unknown[]) =>
    wrap(one, plain._n(one, many, count, ...args))
}) as TranslationBundle;

/**
 * Whether a text is made of whole messages: none within another, and beside each other only as facts
 * (` · `), as lines, or as sentences that have an end.
 */
export function isWhole(text: string): boolean {
  const parts = text.match(/⟦[^⟦⟧]*⟧|[^⟦⟧]+/g) ?? [];
  return (
    parts.join('') === text &&
    parts.every((part, index) => {
      if (part.startsWith('⟦')) {
        return !parts[index + 1]?.startsWith('⟦');
      }
      const [before, after] = [parts[index - 1], parts[index + 1]];
      return part === ' '
        ? /[.!?…]⟧$/.test(before ?? '')
        : (!before || /^( · |\n)/.test(part)) &&
            (!after || /( · |\n)$/.test(part));
    })
  );
}

/** All that can be read or heard below an element. */
export function textsIn(root: Element): string[] {
  const texts: string[] = [];
  for (const node of root.querySelectorAll('*')) {
    if (node.children.length === 0) {
      texts.push(node.textContent ?? '');
    } else {
      texts.push(
        ...[...node.childNodes]
          .filter(({ nodeType }) => nodeType === Node.TEXT_NODE)
          .map(({ textContent }) => textContent ?? '')
      );
    }
    for (const name of ['aria-label', 'aria-valuetext', 'title']) {
      texts.push(node.getAttribute(name) ?? '');
    }
  }
  return texts.map(text => text.trim()).filter(Boolean);
}

export function expectWhole(texts: string[]): void {
  expect(texts.filter(text => text.includes('⟦')).length).toBeGreaterThan(0);
  expect(texts.filter(text => !isWhole(text))).toEqual([]);
}
