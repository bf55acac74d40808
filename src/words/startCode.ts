import type { IStartChoice } from '../model/contract';
import { LOAD } from '../model/tokens';
import { trans } from '../model/trans';

/** Names that are not spelt as their options are. */
const SHORT: Record<string, string> = {
  num_ranks: '-n',
  time_limit: '--time'
};
/** Fields that the server counts in bytes. */
const BYTES = new Set(['min_free_memory']);
/** Fields that it counts in seconds, and whose options read a number alone as minutes, as Slurm does. */
const SECONDS = new Set(['time_limit', 'idle_limit', 'park_after']);

/**
 * The code that starts what the form would: `%dist_init -n 4 --gpu-ids 0,1,2,3`.
 *
 * An option is called as its field, so that fields of newer servers find theirs.
 */
export function startCode(choice: IStartChoice): string {
  const words = ['%dist_init'];
  const comments: string[] = [];
  for (const [name, value] of Object.entries(choice)) {
    const option = SHORT[name] ?? `--${name.replaceAll('_', '-')}`;
    if (name === 'env') {
      for (const [key, text] of Object.entries(choice.env ?? {})) {
        const quoted = quote(`${key}=${text}`);
        if (quoted === null) {
          const words = trans.__(
            '%1 has both kinds of quotes: set it in a cell.',
            key
          );
          comments.push(`# ${words}`);
        } else {
          words.push(option, quoted);
        }
      }
    } else if (Array.isArray(value)) {
      words.push(option, value.join(','));
    } else if (value === true) {
      words.push(option);
    } else if (BYTES.has(name)) {
      words.push(option, size(Number(value)));
    } else if (SECONDS.has(name)) {
      words.push(option, `${Number(value)}s`);
    } else if (value !== false) {
      words.push(option, quote(String(value)) ?? '');
    }
  }
  return [LOAD, ...comments, words.join(' ')].join('\n');
}

/** `20GiB`, or `512MiB` where that is not whole. */
function size(bytes: number): string {
  const gibibytes = bytes / 2 ** 30;
  return Number.isInteger(gibibytes)
    ? `${gibibytes}GiB`
    : `${Math.round(bytes / 2 ** 20)}MiB`;
}

/**
 * A word as the options of magics are read: IPython fills in `{…}` and `$…`, then splits at blanks that
 * are not in quotes, and a shell's rules give the rest. Null if they have no way to say it.
 */
export function quote(text: string): string | null {
  const word = quoteForShell(text);
  return (
    word &&
    word
      .replace(/[{}]/g, '$&$&')
      // Doubled, it would be left so by some versions of IPython in some places.
      .replace(/\$(?=[\w.])/g, '{chr(36)}')
  );
}

function quoteForShell(text: string): string | null {
  if (/^[\w.,:/@%+=-]+$/.test(text)) {
    return text;
  }
  if (!text.includes('"')) {
    return `"${text.replaceAll('\\', '\\\\')}"`;
  }
  if (!text.includes("'")) {
    return `'${text}'`;
  }
  return /\s/.test(text) ? null : text.replace(/[^\w.,:/@%+=-]/g, '\\$&');
}
