import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { ApiError } from '../../model/restClient';
import type { IApiError } from '../../model/contract';
import type { IGpu } from '../../model/gpuContract';
import { draftOf, type IJobDraft } from '../../model/jobDraft';
import type { JobRequests } from '../../model/queue';
import type { IJobs } from '../../model/queueContract';
import type { IJobRequest, ISubmitSchema } from '../../model/submitContract';
import { trans } from '../../model/trans';
import { Refusal, SubmitForm } from './submitForm';

interface ISubmitDialogOptions {
  /** The dialog opens before it is loaded. */
  schema: Promise<ISubmitSchema>;
  request: IJobRequest;
  gpus: readonly IGpu[];
  requests: JobRequests;
  insert: {
    label: string;
    execute: (request: IJobRequest, schema: ISubmitSchema) => void;
  };
}

const FORM = '.jp-dist-SubmitForm';

const [CANCEL, INSERT, SUBMIT] = [0, 1, 2];

/**
 * Submit jobs with a dialog; null if it is cancelled.
 *
 * Rejects with an `ApiError` if the server refuses the jobs after the dialog was closed.
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
    const draw = (changes: Partial<SubmitBody>) => {
      Object.assign(this, changes);
      if (!this.isDisposed) {
        this.update();
      }
    };
    _options.schema.then(
      schema => draw({ schema }),
      (refusal: IApiError) => draw({ refusal })
    );
  }

  schema: ISubmitSchema | null = null;
  refusal: IApiError | null = null;
  request: IJobRequest | null = null;

  refuse(error: IApiError | null): void {
    this.refusal = error;
    this.update();
  }

  protected render(): JSX.Element {
    const { schema, refusal } = this;
    const { gpus, request, requests } = this._options;
    if (schema) {
      this._draft ??= draftOf(schema, request);
      return (
        <SubmitForm
          {...{ schema, gpus, requests, refusal }}
          draft={this._draft}
          onChange={this._onChange}
        />
      );
    }
    return (
      <div className="jp-dist-SubmitForm" role="status" aria-busy={!refusal}>
        {refusal ? (
          <Refusal error={refusal} />
        ) : (
          <p className="jp-dist-quiet">{trans.__('Loading the form…')}</p>
        )}
      </div>
    );
  }

  private readonly _onChange = (request: IJobRequest | null): void => {
    this.request = request;
    if (this.refusal) {
      this.refuse(null);
    }
  };

  private _draft: IJobDraft | null = null;
}

/** A dialog that stays open if the server refuses the jobs. */
class SubmitDialog extends Dialog<unknown> {
  constructor(
    private readonly _options: ISubmitDialogOptions,
    private readonly _form: SubmitBody
  ) {
    const { insert } = _options;
    super({
      title: trans.__('Submit a job'),
      body: _form,
      defaultButton: SUBMIT,
      // The form may have the focus already: it stays there.
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
    this.node.tabIndex = -1;
  }

  /** The server's answer, also if the dialog was closed before. */
  submitted: Promise<IJobs> | null = null;

  handleEvent(event: Event): void {
    // In the form, Enter submits only in a line of text.
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

  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    // Until the form is loaded, no notebook gets the keys.
    this.node.focus();
  }

  resolve(index = SUBMIT): void {
    const { request, schema } = this._form;
    if (index === CANCEL) {
      super.resolve(index);
    } else if (request && schema && index === INSERT) {
      this._options.insert.execute(request, schema);
      super.resolve(index);
    } else if (request && !this.submitted) {
      void this._submit(request);
    }
  }

  private async _submit(request: IJobRequest): Promise<void> {
    this.submitted = this._options.requests.submitJobs(request);
    try {
      await this.submitted;
      super.resolve(SUBMIT);
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      // Without the form, the caller shows it.
      if (!this.isDisposed) {
        this.submitted = null;
        this._form.refuse(error);
      }
    }
  }
}
