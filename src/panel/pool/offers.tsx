import { Button } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React from 'react';

import type { IApiError, IOffer, IStartChoice } from '../../model/contract';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import { useModel } from '../../ui/useModel';
import { sayOffer } from '../../words/lineWords';
import type { IPanelServices } from '../services';

/**
 * What a start that was refused could be instead, a button each: `Wait (#3 in line, by 14:20)`,
 * `Start on GPUs 2, 3`.
 */
export function Offers(
  props: IPanelServices & { error: IApiError }
): JSX.Element {
  const { error, current, commands } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  return (
    <>
      {error.offers?.map(offer => (
        <Button
          key={offer.kind}
          small
          className={`jp-dist-mod-long${offer.kind === 'wait' ? ' jp-mod-primary' : ''}`}
          disabled={isPending}
          onClick={() => {
            const [id, args] = commandOf(offer, error.choice ?? {});
            void commands.execute(id, args);
          }}
        >
          {sayOffer(offer, serverTime())}
        </Button>
      ))}
    </>
  );
}

function commandOf(
  { kind, gpu_ids, gpus }: IOffer,
  choice: IStartChoice
): [string, ReadonlyPartialJSONObject] {
  const start = (
    changes: IStartChoice
  ): [string, ReadonlyPartialJSONObject] => [
    CommandIDs.startPool,
    { choice: { ...choice, ...changes } as ReadonlyPartialJSONObject }
  ];
  switch (kind) {
    case 'wait':
      return start({ wait: true });
    case 'free':
      return start({ gpu_ids, num_ranks: gpu_ids?.length });
    case 'share':
      return start({ oversubscribe: true, one_rank_per_gpu: false });
    case 'job':
      return [CommandIDs.runNotebookAsJob, { gpus }];
  }
}
