import type { Toolbar } from '@jupyterlab/apputils';
import {
  HTMLSelect,
  LabIcon,
  ReactWidget,
  Toolbar as ToolbarItems,
  ToolbarButtonComponent,
  UseSignal,
  runIcon
} from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../model/trans';
import { download } from '../ui/files';
import { METRICS, RANGES, nameMetric } from './metrics';
import { SELECTIONS, type IChoice } from './selection';
import { makeTable } from './table';
import type { Timeline } from './timeline';

const pauseIcon = new LabIcon({
  name: 'jupyter-dist-server:pause',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" d="M6 5h4v14H6zM14 5h4v14h-4z"/>
</svg>`
});

export function fillToolbar(toolbar: Toolbar, timeline: Timeline): void {
  const { model } = timeline;
  const add = (name: string, render: () => JSX.Element) => {
    const item = ReactWidget.create(
      <UseSignal signal={model.optionsChanged}>{render}</UseSignal>
    );
    toolbar.addItem(name, item);
  };
  /** A list that sets one of the options. */
  const addChoice = <Key extends keyof IChoice>(
    key: Key,
    label: string,
    values: readonly IChoice[Key][],
    nameOf: (value: IChoice[Key]) => string
  ) =>
    add(key, () => (
      <HTMLSelect
        className="jp-dist-Timeline-choice"
        aria-label={label}
        title={label}
        value={`${model.choice[key]}`}
        onChange={({ target }) =>
          model.choose({ [key]: values[target.selectedIndex] })
        }
      >
        {values.map(value => (
          <option key={`${value}`} value={`${value}`}>
            {nameOf(value)}
          </option>
        ))}
      </HTMLSelect>
    ));
  const addButton = (name: string, read: () => ToolbarButtonComponent.IProps) =>
    add(name, () => <ToolbarButtonComponent {...read()} />);

  addChoice('metric', trans.__('Metric'), METRICS, metric =>
    nameMetric(metric)
  );
  addChoice('minutes', trans.__('Range'), RANGES, minutes =>
    trans._n('last %1 minute', 'last %1 minutes', minutes)
  );
  const selections = {
    used: trans.__('GPUs in use'),
    all: trans.__('All GPUs'),
    own: trans.__('This pool')
  };
  addChoice('selection', trans.__('GPUs'), SELECTIONS, one => selections[one]);
  addButton('overlay', () => {
    const { isOverlay } = model.choice;
    return {
      label: isOverlay ? trans.__('Rows') : trans.__('Overlay'),
      tooltip: isOverlay
        ? trans.__('Show a row for each GPU')
        : trans.__('Show all curves in one chart'),
      onClick: () => model.choose({ isOverlay: !isOverlay })
    };
  });
  addButton('fit', () => {
    const { isFitted } = model.choice;
    return {
      label: isFitted ? trans.__('Full range') : trans.__('Fit'),
      tooltip: isFitted
        ? trans.__('Show the whole range')
        : trans.__('Leave out the time before the first value'),
      onClick: () => model.choose({ isFitted: !isFitted })
    };
  });
  addButton('pause', () => {
    const { isPaused } = model;
    return {
      icon: isPaused ? runIcon : pauseIcon,
      label: isPaused ? trans.__('Resume') : trans.__('Pause'),
      tooltip: isPaused
        ? trans.__('Resume live view')
        : trans.__('Pause live updates'),
      onClick: () => (model.isPaused = !isPaused)
    };
  });
  addButton('zoom', () => ({
    label: trans.__('Reset zoom'),
    tooltip: model.isZoomed
      ? trans.__('Show the whole range (double-click, or 0)')
      : trans.__('Drag over the curves to zoom, or press +'),
    enabled: model.isZoomed,
    onClick: () => model.resetZoom()
  }));
  toolbar.addItem('spacer', ToolbarItems.createSpacerItem());
  const save = (blob: Blob | null, extension: string) => {
    const time = new Date(model.view[1] * 1000).toISOString();
    const stamp = time.slice(0, 19).replace(/:/g, '');
    if (blob) {
      download(blob, `gpus-${stamp}.${extension}`);
    }
  };
  addButton('png', () => ({
    label: trans.__('PNG'),
    tooltip: trans.__('Save the chart as an image'),
    enabled: model.gpus.length > 0,
    onClick: () => timeline.picture().toBlob(blob => save(blob, 'png'))
  }));
  addButton('csv', () => ({
    label: trans.__('CSV'),
    tooltip: trans.__('Save the visible values as a table'),
    enabled: model.gpus.length > 0,
    onClick: () =>
      save(new Blob([makeTable(model)], { type: 'text/csv' }), 'csv')
  }));
}
