import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { ApiError } from '../../model/client';
import type { IApiError } from '../../model/contract';
import type { IGpu } from '../../model/gpuContract';
import { draftOf } from '../../model/jobDraft';
import type { JobRequests } from '../../model/queue';
import type { IJobs } from '../../model/queueContract';
import type { IJobRequest, ISubmitSchema } from '../../model/submitContract';
import { SubmitForm } from './submitForm';

export interface ISubmitDialogOptions {
  schema: ISubmitSchema;
  /** What the form begins with. */
  request: IJobRequest;
  gpus: readonly IGpu[];
  requests: JobRequests;
  /** What the second button does with what was typed. */
  insert: { label: string; execute: (request: IJobRequest) => void };
  trans: TranslationBundle;
}

const FORM = '.jp-dist-SubmitForm';

/** By place of the button. */
const [CANCEL, INSERT, SUBMIT] = [0, 1, 2];

/**
 * Ask for jobs, until they are in the queue; null if they are not wanted after all.
 */
export async function askForJobs(
  options: ISubmitDialogOptions
): Promise<IJobs | null> {
  const dialog = new SubmitDialog(options, new SubmitBody(options));
  await dialog.launch();
  return dialog.submitted;
}

class SubmitBody extends ReactWidget {
  constructor(private readonly _options: ISubmitDialogOptions) {
    super();
    this._draft = draftOf(_options.schema, _options.request);
  }

  /** What has been typed; null where something in it is wrong. */
  request: IJobRequest | null = null;

  refuse(error: IApiError | null): void {
    this._refusal = error;
    this.update();
  }

  protected render(): JSX.Element {
    const { schema, gpus, requests, trans } = this._options;
    return (
      <SubmitForm
        {...{ schema, gpus, requests, trans }}
        draft={this._draft}
        refusal={this._refusal}
        onChange={this._onChange}
      />
    );
  }

  private readonly _onChange = (request: IJobRequest | null): void => {
    this.request = request;
    if (this._refusal) {
      this.refuse(null);
    }
  };

  private readonly _draft;
  private _refusal: IApiError | null = null;
}

/** A dialog that stays open while the server refuses what was typed. */
class SubmitDialog extends Dialog<unknown> {
  constructor(
    private readonly _options: ISubmitDialogOptions,
    private readonly _form: SubmitBody
  ) {
    const { insert, trans } = _options;
    super({
      title: trans.__('Submit a job'),
      body: _form,
      defaultButton: SUBMIT,
      // The form has the focus already when the dialog gives it, once the browser is idle: it stays there.
      focusNodeSelector: `${FORM} :focus, ${FORM}:not(:focus-within) .jp-mod-code`,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.createButton({
          label: insert.label,
          accept: true,
          className: 'jp-dist-InsertButton'
        }),
        Dialog.okButton({ label: trans.__('Submit') })
      ]
    });
    this.addClass('jp-dist-SubmitDialog');
  }

  submitted: IJobs | null = null;

  handleEvent(event: Event): void {
    // Enter in a line of text submits; elsewhere in the form it does what it does there.
    const isOurs =
      event instanceof KeyboardEvent &&
      event.key === 'Enter' &&
      event.target instanceof HTMLElement &&
      event.target.closest(FORM) !== null &&
      !(event.target instanceof HTMLInputElement);
    if (!isOurs) {
      super.handleEvent(event);
    }
  }

  resolve(index = SUBMIT): void {
    const { request } = this._form;
    if (index === CANCEL) {
      super.resolve(index);
    } else if (request && index === INSERT) {
      this._options.insert.execute(request);
      super.resolve(index);
    } else if (request && !this._isBusy) {
      void this._submit(request);
    }
  }

  private async _submit(request: IJobRequest): Promise<void> {
    this._isBusy = true;
    try {
      this.submitted = await this._options.requests.submitJobs(request);
      super.resolve(SUBMIT);
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      this._form.refuse(error);
    } finally {
      this._isBusy = false;
    }
  }

  private _isBusy = false;
}
