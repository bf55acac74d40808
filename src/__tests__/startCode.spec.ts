import { readFileSync } from 'fs';
import { join } from 'path';

import type { IStartChoice } from '../model/contract';
import { startCode } from '../words/startCode';
import { LOAD } from '../model/tokens';

interface ISample {
  choice: IStartChoice;
  line: string;
}

// What the magic reads from these lines, the tests of the notebook side check.
const path = join(__dirname, '../../tests/notebook/start_code.json');
const samples = JSON.parse(readFileSync(path, 'utf8')) as ISample[];

describe('startCode', () => {
  it.each(samples.map(({ choice, line }) => [line, choice] as const))(
    'writes %s',
    (line, choice) => {
      expect(startCode(choice)).toBe(`${LOAD}\n${line}`);
    }
  );

  it('says what an option cannot', () => {
    expect(startCode({ env: { A: `it's a "thing"` } })).toBe(
      `${LOAD}\n# A has both kinds of quotes: set it in a cell.\n%dist_init`
    );
  });
});
