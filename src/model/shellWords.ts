/** A part of a word: in single quotes, in double ones, behind a backslash, or plain. */
const PART = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)/y;

/** The words of a command as a shell splits it, without its variables; null where a quote is open. */
export function splitWords(text: string): string[] | null {
  const words: string[] = [];
  let isInWord = false;
  for (let index = 0; index < text.length;) {
    if (/\s/.test(text[index])) {
      isInWord = false;
      index += 1;
      continue;
    }
    PART.lastIndex = index;
    const match = PART.exec(text);
    if (!match) {
      return null;
    }
    const [all, single, double, escaped, plain] = match;
    const part =
      single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? plain;
    if (isInWord) {
      words[words.length - 1] += part;
    } else {
      words.push(part);
    }
    isInWord = true;
    index += all.length;
  }
  return words;
}

/** Words as one types them in a shell. */
export function joinWords(words: readonly string[]): string {
  return words
    .map(word =>
      // A shell leaves `{lr}` as it is, but makes several words of `{1,2}` and `{1..2}`.
      /^[\w@%+=:,./{}-]+$/.test(word) && !/\{.*(,|\.\.).*\}/.test(word)
        ? word
        : `'${word.replaceAll("'", "'\\''")}'`
    )
    .join(' ');
}
