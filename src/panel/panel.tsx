import { PathExt } from '@jupyterlab/coreutils';
import type { ITranslator } from '@jupyterlab/translation';
import { ReactWidget, SidePanel } from '@jupyterlab/ui-components';
import { DisposableSet } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { AccordionPanel } from '@lumino/widgets';
import React from 'react';
import { createPortal } from 'react-dom';

import { PANEL_ID } from '../model/tokens';
import { trans } from '../model/trans';
import { ErrorBoundary } from '../ui/errorBoundary';
import { ranksIcon } from '../ui/icons';
import { focusNextAction } from '../ui/useFocusHandOff';
import { whenKnown } from './connectionNote';
import type { Part } from './connectionNote';
import { GpuList, GpuSummary } from './gpus/gpuList';
import { OtherPools, OtherPoolsSummary } from './others/otherPools';
import { PoolSummary, PoolView } from './pool/poolView';
import { QueueSection, QueueSummary } from './queue/queueSection';
import { rememberSections, SECTIONS } from './sections';
import type { IPanelServices } from './services';
import {
  VariablesSection,
  VariablesSummary
} from './variables/variablesSection';

/** The places of two among them. */
const GPUS = 1;
const QUEUE = 3;

/** The panel in the left sidebar. */
export class DistPanel extends SidePanel {
  constructor(
    private readonly _services: IPanelServices,
    translator: ITranslator,
    restored: Promise<unknown>
  ) {
    super({ translator });
    const { model, current, uiState } = _services;
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

    const section = (
      title: string,
      Body: Part,
      Summary: Part,
      watch?: () => IDisposable
    ) => {
      const KnownSummary = whenKnown(Summary);
      return new Section(
        title,
        <Body {..._services} />,
        <KnownSummary {..._services} />,
        watch
      );
    };
    const sections = [
      section(trans.__('Pool'), PoolView, PoolSummary),
      section(trans.__('GPUs'), whenKnown(GpuList), GpuSummary),
      section(
        trans.__('Other pools'),
        whenKnown(OtherPools),
        OtherPoolsSummary
      ),
      section(trans.__('Queue'), whenKnown(QueueSection), QueueSummary),
      section(
        trans.__('Variables'),
        whenKnown(VariablesSection),
        VariablesSummary,
        () => _services.variables.watch()
      )
    ];
    const content = this.content as AccordionPanel;
    sections.forEach((section, index) => {
      this.addWidget(section);
      content.titles[index].appendChild(section.summary);
    });
    // JupyterLab 4.2 restores a panel that was behind another one with all sections folded.
    this._ready = Promise.all([uiState.ready, restored]);
    void rememberSections(content, uiState, this._ready);
    model.changed.connect(this._foldNoGpus, this);
    current.changed.connect(this._follow, this);
    model.changed.connect(this._follow, this);
  }

  /** Unfold the queue, and scroll to it. */
  showQueue(): void {
    const content = this.content as AccordionPanel;
    content.expand(QUEUE);
    content.widgets[QUEUE].node.scrollIntoView?.({ block: 'nearest' });
  }

  protected onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    focusNextAction(this.node.querySelector('.jp-dist-Body'));
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    // Looking at the panel is the moment to ask again whether the extension is there now.
    if (this._services.model.connection.state === 'missing') {
      this._services.model.reconnect();
    }
    if (!this._watching) {
      this._watching = new DisposableSet();
      const { telemetry } = this._services.model;
      this._watching.add(telemetry.watch('gpus', 'agents'));
      this._watching.add(this._services.model.queue.watch('all'));
    }
    this._follow();
  }

  protected onBeforeHide(msg: Message): void {
    this._services.clock.isOn = false;
    this._watching?.dispose();
    this._watching = null;
    super.onBeforeHide(msg);
  }

  /** The ranks' tiles show what there is to show of a machine without GPUs. */
  private _foldNoGpus(): void {
    const { model, uiState } = this._services;
    if (model.gpus) {
      model.changed.disconnect(this._foldNoGpus, this);
      void this._ready.then(() => {
        if (!model.gpus?.gpus.length && !uiState.get(SECTIONS)) {
          (this.content as AccordionPanel).collapse(GPUS);
        }
      });
    }
  }

  private _follow(): void {
    if (!this.isVisible) {
      return;
    }
    const { model, current, clock } = this._services;
    // How long a rank is idle or busy is not known while the server is away.
    clock.isOn = model.connection.state !== 'stale';
    const path = current.notebook?.path ?? '';
    this._notebookName.node.textContent = PathExt.basename(path);
    this._notebookName.node.title = path;
  }

  /** The sections can be as the user left them. */
  private readonly _ready: Promise<unknown>;
  private readonly _notebookName: Widget;
  /** Held while the panel can be seen. */
  private _watching: DisposableSet | null = null;
}

/** A collapsible part of the panel; its summary stays visible when it is collapsed. */
class Section extends ReactWidget {
  constructor(
    title: string,
    private readonly _body: JSX.Element,
    private readonly _summary: JSX.Element,
    /** Called when the section becomes visible; the result is disposed of when it is hidden. */
    private readonly _watch?: () => IDisposable
  ) {
    super();
    this.title.label = title;
    this.addClass('jp-dist-Section');
    this.summary = document.createElement('span');
    this.summary.className = 'jp-dist-Section-summary';
  }

  /** To be placed into the title of the section. */
  readonly summary: HTMLElement;

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._watching ??= this._watch?.() ?? null;
  }

  protected onBeforeHide(msg: Message): void {
    this._watching?.dispose();
    this._watching = null;
    super.onBeforeHide(msg);
  }

  protected render(): JSX.Element {
    return (
      <div className="jp-dist-Body">
        <ErrorBoundary>
          {this._body}
          {createPortal(this._summary, this.summary)}
        </ErrorBoundary>
      </div>
    );
  }

  private _watching: IDisposable | null = null;
}
