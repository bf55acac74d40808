import React from 'react';

import { bareName, cards } from '../../model/cards';
import type { Card } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import { isInUse } from '../../model/gpuUse';
import { serverTime } from '../../model/serverTime';
import type { ITelemetry } from '../../model/telemetry';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ErrorText, Link, Note } from '../../ui/controls';
import { Notices } from '../../ui/notices';
import { useSpan } from '../../ui/sparkline';
import { isSame, useModel } from '../../ui/useModel';
import { saySpan } from '../../words/loadWords';
import { formatMoment } from '../../words/format';
import { isStale } from '../connectionNote';
import type { IPanelServices } from '../services';
import { GpuCard } from './gpuCard';

/** Whether GPUs that nobody uses are shown too, as the user chose. */
const SHOW_ALL = 'showAllGpus';

/** The GPUs of the machine and how busy they are, or why there are none. */
export function GpuList(services: IPanelServices): JSX.Element {
  const { model, current, uiState, commands } = services;
  const gpus = useModel(model, ({ gpus }) => gpus);
  const gpusError = useModel(model, ({ gpusError }) => gpusError);
  const isLost = useModel(model, isStale);
  const allGpus = useModel(model, ({ allGpus }) => allGpus);
  const nodes = useModel(model, ({ nodes }) => nodes);
  const own = useModel(
    current,
    ({ pool }) => (pool?.ranks ?? []).flatMap(({ gpu }) => gpu?.uuid ?? []),
    isSame
  );
  const all = cards(allGpus).sort(
    (a, b) => Number(isOf(own, b)) - Number(isOf(own, a))
  );
  const folded = useFolded(services, all);
  const isUnfolded = useModel(uiState, state => state.get(SHOW_ALL) === true);
  const shown = isUnfolded ? all : folded;
  const trouble = useModel(model.telemetry, ({ trouble }) => trouble);
  const span = useSpan(services);
  if (gpusError) {
    return (
      <div className="jp-dist-Reason" role="alert">
        <ErrorText error={gpusError} />
      </div>
    );
  }
  if (!gpus) {
    return (
      <p className="jp-dist-quiet jp-dist-loading" role="status">
        {trans.__('Looking for GPUs…')}
      </p>
    );
  }
  const since = trouble?.since ?? null;
  const isOld = since !== null || isLost;
  return (
    <>
      {trouble && (
        <Note kind="warn">
          {since === null
            ? trouble.message
            : trans.__(
                'Stale since %1: %2',
                formatMoment(since, serverTime()),
                trouble.message
              )}
        </Note>
      )}
      <Notices notices={gpus.problems} uiState={uiState} kind="warn" />
      {gpus.reason && gpus.reason !== trouble?.message && (
        <p className="jp-dist-quiet">{gpus.reason}</p>
      )}
      {all.length > 0 && (
        <>
          <p className="jp-dist-quiet">{saySpan('gpu', span)}</p>
          {Object.keys(nodes).length > 0 && (
            <p className="jp-dist-NodeHead">
              <strong>{trans.__('This machine')}</strong>
            </p>
          )}
          <Cards
            {...services}
            label={trans.__('GPUs')}
            cards={shown.filter(card => nodeOf(card) === '')}
            isOld={isOld}
          />
        </>
      )}
      {Object.entries(nodes).map(([node, { reason }]) => (
        <React.Fragment key={node}>
          <p className="jp-dist-NodeHead">
            <strong>{node}</strong>
            {reason && <span className="jp-dist-quiet">{reason}</span>}
          </p>
          <Cards
            {...services}
            label={trans.__('GPUs of node %1', node)}
            cards={shown.filter(card => nodeOf(card) === node)}
            isOld={isLost}
          />
        </React.Fragment>
      ))}
      {all.length > 0 && (
        <div className="jp-dist-Links">
          {all.length > folded.length && (
            <Link onClick={() => uiState.set(SHOW_ALL, !isUnfolded)}>
              {isUnfolded
                ? trans.__('Show fewer')
                : trans.__('Show %1 more', all.length - folded.length)}
            </Link>
          )}
          <Link onClick={() => void commands.execute(CommandIDs.openTimeline)}>
            {trans.__('Open timeline')}
          </Link>
        </div>
      )}
    </>
  );
}

interface ICardsProps extends IPanelServices {
  label: string;
  cards: readonly Card[];
  /** Whether the readings are out of date. */
  isOld: boolean;
}

/** The cards of one machine. */
function Cards(props: ICardsProps): JSX.Element | null {
  const { label, cards, isOld } = props;
  return cards.length ? (
    <ul
      className={isOld ? 'jp-dist-Cards jp-mod-stale' : 'jp-dist-Cards'}
      aria-label={label}
    >
      {cards.map(card =>
        'gpu' in card ? (
          <GpuCard key={card.gpu.uuid} {...props} gpu={card.gpu} />
        ) : (
          <MigCard
            key={card.instances[0].parent}
            {...props}
            instances={card.instances}
          />
        )
      )}
    </ul>
  ) : null;
}

/** The other machine that a card's GPU is in; empty for the server's. */
function nodeOf(card: Card): string {
  return ('gpu' in card ? card.gpu : card.instances[0]).node ?? '';
}

/** Whether one of these GPUs is on a card. */
function isOf(uuids: string[], card: Card): boolean {
  const gpus = 'gpu' in card ? [card.gpu] : card.instances;
  return gpus.some(({ uuid }) => uuids.includes(uuid));
}

/** As many cards are shown without folding, and as many at least with it. */
const MANY = 6;
const FEW = 3;

/** The cards without those that nobody uses, if there are many. */
function useFolded({ model }: IPanelServices, all: Card[]): Card[] {
  const isUsed = (telemetry: ITelemetry, card: Card) =>
    ('gpu' in card ? [card.gpu] : card.instances).some(({ uuid }) =>
      isInUse(telemetry.gpu(uuid))
    );
  const used = useModel(
    model.telemetry,
    telemetry => all.flatMap((card, i) => (isUsed(telemetry, card) ? [i] : [])),
    isSame
  );
  if (all.length <= MANY) {
    return all;
  }
  const idle = all.filter((_, i) => !used.includes(i));
  const kept = idle.slice(0, Math.max(0, FEW - (all.length - idle.length)));
  return all.filter(card => !idle.includes(card) || kept.includes(card));
}

/** What stands beside the section's title: `8 · 5 in use`, `none`. */
export function GpuSummary({ model }: IPanelServices): JSX.Element | null {
  const inventory = useModel(model, ({ gpus }) => gpus);
  const gpus = useModel(model, ({ allGpus }) => allGpus);
  const used = useModel(
    model.telemetry,
    telemetry => gpus.filter(({ uuid }) => isInUse(telemetry.gpu(uuid))).length
  );
  if (!inventory) {
    return null;
  }
  if (!gpus.length) {
    return <>{trans.__('none')}</>;
  }
  return (
    <>{used ? trans.__('%1 · %2 in use', gpus.length, used) : gpus.length}</>
  );
}

/** A GPU that is divided, and its MIG instances. */
function MigCard(
  props: IPanelServices & { instances: [IGpu, ...IGpu[]] }
): JSX.Element {
  const { instances } = props;
  const [{ index, name, node, parent }] = instances;
  const where = node ? trans.__('%1 on %2', index, node) : `${index}`;
  const label = trans.__('GPU %1', where);
  return (
    <li className="jp-dist-MigCard" aria-label={label}>
      <div className="jp-dist-GpuCard-head">
        <strong title={parent ?? undefined}>{label}</strong>
        <span className="jp-dist-quiet">{bareName(name)}</span>
        <span className="jp-dist-quiet jp-dist-MigCard-count">
          {trans._n('%1 MIG instance', '%1 MIG instances', instances.length)}
        </span>
      </div>
      <ul aria-label={trans.__('MIG instances of GPU %1', where)}>
        {instances.map(gpu => (
          <GpuCard key={gpu.uuid} {...props} gpu={gpu} />
        ))}
      </ul>
    </li>
  );
}
