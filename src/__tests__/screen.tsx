import { CommandRegistry } from '@lumino/commands';
import React, { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';

import { UiState } from '../model/uiState';
import { VariablesModel } from '../model/variables';
import { Clock } from '../ui/clock';
import { PoolView } from '../panel/pool/poolView';
import type { IPanelServices } from '../panel/services';
import type { StartModel } from '../model/startModel';
import { CommandIDs } from '../model/tokens';
import { makeModel, makeStart } from './samples';
import type { IFakeModel, Changes } from './samples';

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

let root: Root;
/** What the form is about. */
export let start: StartModel;
/** Where the part is shown; empty at the start of each test. */
export let host: HTMLElement;
/** What the buttons did. */
export let executed: unknown[];

beforeEach(() => {
  host = document.body.appendChild(document.createElement('div'));
  root = createRoot(host);
  executed = [];
});

afterEach(() => {
  act(() => root.unmount());
  host.remove();
});

/** Show a part of the panel, for a model that differs from the sample in this; return the model. */
export function show(
  changes: Changes,
  Part: (services: IPanelServices) => JSX.Element | null = PoolView
): IFakeModel {
  const model = makeModel(changes);
  start = makeStart(model);
  const variables = new VariablesModel(model, model.requests);
  const uiState = new UiState(null, '');
  const commands = new CommandRegistry();
  for (const id of [
    ...Object.values(CommandIDs),
    'docmanager:open',
    'notebook:change-kernel'
  ]) {
    commands.addCommand(id, {
      execute: args => executed.push({ id, ...args })
    });
  }
  const clock = new Clock();
  act(() =>
    root.render(
      <Part
        {...{ model, current: model, start, variables }}
        {...{ uiState, commands, clock }}
      />
    )
  );
  return model;
}

export function button(name: string): HTMLButtonElement {
  const found = [...host.querySelectorAll('button')].find(
    node => (node.getAttribute('aria-label') ?? node.textContent) === name
  );
  if (!found) {
    throw new Error(`No button "${name}" in: ${host.textContent}`);
  }
  return found;
}

export function press(name: string): void {
  act(() => button(name).click());
}
