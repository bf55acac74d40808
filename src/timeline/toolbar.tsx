import type { Toolbar } from '@jupyterlab/apputils';
import {
  HTMLSelect,
  ReactWidget,
  LabIcon,
  Toolbar as ToolbarItems,
  ToolbarButtonComponent,
  UseSignal,
  runIcon
} from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../model/trans';
import { download } from '../ui/download';
import { METRICS, RANGES, nameMetric } from './metrics';
import type { ChartMetric } from './metrics';
import { SELECTIONS } from './selection';
import type { Selection } from './selection';
import { makeTable } from './table';
import type { Timeline } from './timeline';

const pauseIcon = new LabIcon({
  name: 'jupyter-dist-server:pause',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" d="M6 5h4v14H6zM14 5h4v14h-4z"/>
</svg>`
});

/**
 * Fill the toolbar of a timeline.
 */
export function fillToolbar(toolbar: Toolbar, timeline: Timeline): void {
  const { model } = timeline;
  const add = (name: string, render: () => JSX.Element) => {
    const item = ReactWidget.create(
      <UseSignal signal={model.optionsChanged}>{render}</UseSignal>
    );
    toolbar.addItem(name, item);
  };
  add('metric', () => (
    <Choice
      label={trans.__('Metric')}
      value={model.metric}
      options={METRICS.map(metric => [metric, nameMetric(metric)])}
      choose={metric => (model.metric = metric as ChartMetric)}
    />
  ));
  add('range', () => (
    <Choice
      label={trans.__('Range')}
      value={`${model.minutes}`}
      options={RANGES.map(minutes => [
        `${minutes}`,
        trans._n('last %1 minute', 'last %1 minutes', minutes)
      ])}
      choose={minutes => (model.minutes = Number(minutes))}
    />
  ));
  add('gpus', () => (
    <Choice
      label={trans.__('GPUs')}
      value={model.choice.selection}
      options={SELECTIONS.map(one => [one, nameSelection(one)])}
      choose={selection => model.choose({ selection: selection as Selection })}
    />
  ));
  add('overlay', () => (
    <ToolbarButtonComponent
      label={model.choice.isOverlay ? trans.__('Rows') : trans.__('Overlay')}
      tooltip={
        model.choice.isOverlay
          ? trans.__('Show a row for each GPU')
          : trans.__('Show all curves in one chart')
      }
      onClick={() => model.choose({ isOverlay: !model.choice.isOverlay })}
    />
  ));
  add('fit', () => (
    <ToolbarButtonComponent
      label={model.choice.isFitted ? trans.__('Full range') : trans.__('Fit')}
      tooltip={
        model.choice.isFitted
          ? trans.__('Show the whole range')
          : trans.__('Leave out the time before the first value')
      }
      onClick={() => model.choose({ isFitted: !model.choice.isFitted })}
    />
  ));
  add('pause', () => (
    <ToolbarButtonComponent
      icon={model.isPaused ? runIcon : pauseIcon}
      label={model.isPaused ? trans.__('Resume') : trans.__('Pause')}
      tooltip={
        model.isPaused
          ? trans.__('Resume live view')
          : trans.__('Pause live updates')
      }
      onClick={() => (model.isPaused = !model.isPaused)}
    />
  ));
  add('zoom', () => (
    <ToolbarButtonComponent
      label={trans.__('Reset zoom')}
      tooltip={
        model.isZoomed
          ? trans.__('Show the whole range (double-click, or 0)')
          : trans.__('Drag over the curves to zoom, or press +')
      }
      enabled={model.isZoomed}
      onClick={() => model.resetZoom()}
    />
  ));
  toolbar.addItem('spacer', ToolbarItems.createSpacerItem());
  const stamp = () =>
    new Date(model.view[1] * 1000).toISOString().slice(0, 19).replace(/:/g, '');
  add('png', () => (
    <ToolbarButtonComponent
      label={trans.__('PNG')}
      tooltip={trans.__('Save the chart as an image')}
      enabled={model.gpus.length > 0}
      onClick={() =>
        timeline.picture().toBlob(blob => {
          if (blob) {
            download(blob, `gpus-${stamp()}.png`);
          }
        })
      }
    />
  ));
  add('csv', () => (
    <ToolbarButtonComponent
      label={trans.__('CSV')}
      tooltip={trans.__('Save the visible values as a table')}
      enabled={model.gpus.length > 0}
      onClick={() =>
        download(
          new Blob([makeTable(model)], { type: 'text/csv' }),
          `gpus-${stamp()}.csv`
        )
      }
    />
  ));
}

function nameSelection(selection: Selection): string {
  switch (selection) {
    case 'used':
      return trans.__('GPUs in use');
    case 'all':
      return trans.__('All GPUs');
    case 'own':
      return trans.__('This pool');
  }
}

interface IChoiceProps {
  label: string;
  value: string;
  /** Values and how they are called. */
  options: (readonly [string, string])[];
  choose(value: string): void;
}

function Choice({ label, value, options, choose }: IChoiceProps): JSX.Element {
  return (
    <HTMLSelect
      className="jp-dist-Timeline-choice"
      aria-label={label}
      title={label}
      value={value}
      onChange={event => choose(event.target.value)}
    >
      {options.map(([value, name]) => (
        <option key={value} value={value}>
          {name}
        </option>
      ))}
    </HTMLSelect>
  );
}
