import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import React from 'react';
import { createPortal } from 'react-dom';

import { ErrorBoundary } from '../ui/errorBoundary';

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
    private readonly _trans: TranslationBundle,
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

  /** Pixels that all of it would take. */
  get contentHeight(): number {
    return Math.ceil(this._content?.getBoundingClientRect().height ?? 0);
  }

  /** Emitted when that has changed. */
  get contentResized(): ISignal<this, void> {
    return this._contentResized;
  }

  protected render(): JSX.Element {
    const { body, summary } = this._render();
    return (
      <>
        <div ref={this._follow}>
          <ErrorBoundary trans={this._trans}>{body}</ErrorBoundary>
        </div>
        {createPortal(
          <ErrorBoundary trans={this._trans} isSilent>
            {summary}
          </ErrorBoundary>,
          this.summary
        )}
      </>
    );
  }

  private readonly _follow = (content: HTMLElement | null): void => {
    this._observer.disconnect();
    this._content = content;
    if (content) {
      this._observer.observe(content);
    }
  };

  private readonly _contentResized = new Signal<this, void>(this);
  private readonly _observer = new ResizeObserver(() =>
    this._contentResized.emit()
  );
  private _content: HTMLElement | null = null;
}
