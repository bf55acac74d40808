import { CommandIDs } from '../tokens';
import { OtherPools } from '../panel/otherPools';
import { makeHolder, makePool } from './samples';
import { executed, host, press, show } from './screen';

describe('An orphaned pool', () => {
  const orphaned = new Date(2026, 0, 1, 14, 3, 12).getTime() / 1000;
  const orphan = makePool({
    id: 'p2',
    kernel_id: 'k2',
    name: 'deep/plot.ipynb',
    orphaned,
    holders: [makeHolder({ as: 'server', kernel_id: null, name: '' })]
  });
  const group = () =>
    host.querySelector('[role=group][aria-label="Pool of plot.ipynb"]');

  it('is shown, and can be stopped', () => {
    show({ orphans: [orphan] }, OtherPools);
    expect(group()?.querySelectorAll('li')).toHaveLength(2);
    expect(group()?.textContent).toMatch('has been gone since 14:03:12');
    expect(group()?.querySelector('pre')?.textContent).toBe(
      '%load_ext jupyter_dist_server\n%dist_attach p2'
    );
    press('Stop…');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p2' }]);
  });

  it('is shown without any notebook, and named by its id if need be', () => {
    const nameless = { ...orphan, id: 'p3', name: '' };
    show({ notebook: null, orphans: [orphan, nameless] }, OtherPools);
    const titles = [...host.querySelectorAll('h4')];
    expect(titles.map(({ textContent }) => textContent)).toEqual([
      'Pool of plot.ipynb',
      'Pool of p3'
    ]);
  });

  it('shows how far its start has come, and cancels it', () => {
    show({ orphans: [{ ...orphan, state: 'CONFIGURING' }] }, OtherPools);
    expect(group()?.textContent).toMatch('0 of 2 ranks ready');
    press('Cancel');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p2' }]);
  });

  it('needs no advice while it stops', () => {
    show({ orphans: [{ ...orphan, state: 'COMPLETING' }] }, OtherPools);
    expect(group()?.textContent).toMatch('Stopping');
    expect(group()?.textContent).not.toMatch('has been gone');
  });

  it('is there in its own notebook too, whose kernel can be restarted', () => {
    show({ pool: { ...orphan, kernel_id: 'k1' } });
    expect(group()).toBeNull();
    expect(host.textContent).toMatch('has been gone since 14:03:12');
    expect(host.textContent).toMatch('restart the kernel');
  });
});
