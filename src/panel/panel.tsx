import { PathExt } from '@jupyterlab/coreutils';
import type { ITranslator } from '@jupyterlab/translation';
import { SidePanel } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { AccordionPanel } from '@lumino/widgets';
import React from 'react';

import { PANEL_ID } from '../model/tokens';
import { ranksIcon } from '../ui/icons';
import { GpuList, GpuSummary } from './gpus/gpuList';
import { OtherPools, OtherPoolsSummary } from './others/otherPools';
import { PoolSummary, PoolView } from './pool/poolView';
import { Section } from './section';
import { SectionLayout } from './sectionLayout';
import type { IPanelServices } from './services';

/** By section: its part of the height while there is too little for all. */
const SHARES = [0.65, 0.25, 0.1];
const CLOSED_AT_FIRST = [false, false, true];

/**
 * The panel in the left sidebar; it draws only while it is visible.
 */
export class DistPanel extends SidePanel {
  constructor(
    private readonly _services: IPanelServices,
    translator: ITranslator
  ) {
    super({ translator });
    const { model, memory, trans } = _services;
    this.id = PANEL_ID;
    this.addClass('jp-dist-Panel');
    this.title.icon = ranksIcon;
    this.title.caption = trans.__('Ranks & GPUs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.caption);

    const heading = new Widget({ node: document.createElement('h2') });
    heading.node.textContent = this.title.caption;
    this._notebookName = new Widget({ node: document.createElement('span') });
    this.header.addWidget(heading);
    this.header.addWidget(this._notebookName);

    this._sections = [
      new Section(trans.__('Pool'), trans, () => ({
        body: <PoolView {..._services} />,
        summary: <PoolSummary {..._services} />
      })),
      new Section(trans.__('GPUs'), trans, () => ({
        body: <GpuList {..._services} />,
        summary: <GpuSummary {..._services} />
      })),
      new Section(trans.__('Other pools'), trans, () => ({
        body: <OtherPools {..._services} />,
        summary: <OtherPoolsSummary {..._services} />
      }))
    ];
    const content = this.content as AccordionPanel;
    this._sections.forEach((section, index) => {
      this.addWidget(section);
      content.titles[index].appendChild(section.summary);
    });
    const layout = new SectionLayout(content, this._sections, SHARES, memory);
    void layout.restore(CLOSED_AT_FIRST);
    model.changed.connect(this._draw, this);
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    // Looking at the panel is the moment to ask again whether the extension is there now.
    if (this._services.model.connection.state === 'missing') {
      this._services.model.reconnect();
    }
    this._watching ??= this._services.model.telemetry.watch('gpus');
    this._draw();
  }

  protected onBeforeHide(msg: Message): void {
    this._services.clock.isOn = false;
    this._watching?.dispose();
    this._watching = null;
    super.onBeforeHide(msg);
  }

  private _draw(): void {
    if (!this.isVisible) {
      return;
    }
    const { model, clock } = this._services;
    // How long a rank is idle or busy is not known while the server is away.
    clock.isOn = model.connection.state !== 'stale';
    const path = model.notebook?.path ?? '';
    this._notebookName.node.textContent = PathExt.basename(path);
    this._notebookName.node.title = path;
    this._sections.forEach(section => section.update());
  }

  private readonly _notebookName: Widget;
  private readonly _sections: Section[];
  /** Held while the panel can be seen. */
  private _watching: IDisposable | null = null;
}
