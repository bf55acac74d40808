import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import { createPortal } from 'react-dom';

/** What a section shows below its title, and at the right of it. */
export interface ISectionContent {
  body: JSX.Element;
  summary: JSX.Element | null;
}

/**
 * A collapsible part of the panel; its summary stays in sight when it is collapsed.
 */
export class Section extends ReactWidget {
  constructor(
    title: string,
    private readonly _render: () => ISectionContent
  ) {
    super();
    this.title.label = title;
    this.addClass('jp-dist-Section');
    this.summary = document.createElement('span');
    this.summary.className = 'jp-dist-Section-summary';
  }

  /** To be placed into the title of the section. */
  readonly summary: HTMLElement;

  protected render(): JSX.Element {
    const { body, summary } = this._render();
    return (
      <>
        {body}
        {createPortal(summary, this.summary)}
      </>
    );
  }
}
