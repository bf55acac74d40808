import React from 'react';

import { ErrorBoundary } from '../ui/errorBoundary';
import { button, host, press, show } from './screen';

let isBroken: boolean;

function Fragile(): JSX.Element {
  if (isBroken) {
    throw new Error('no such rank');
  }
  return <p>well</p>;
}

beforeEach(() => {
  isBroken = true;
  // React says every error aloud, also one that is caught.
  jest.spyOn(console, 'error').mockImplementation();
});

afterEach(() => jest.restoreAllMocks());

it('a part that throws says so in a sentence, to be copied and tried again', () => {
  show({}, () => (
    <ErrorBoundary>
      <Fragile />
    </ErrorBoundary>
  ));
  expect(host.querySelector('[role=alert] p')?.textContent).toBe(
    'This part cannot be shown: no such rank'
  );
  button('Copy');
  isBroken = false;
  press('Try again');
  expect(host.textContent).toBe('well');
});
