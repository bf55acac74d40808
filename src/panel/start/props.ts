import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { IStartField, IStartSchema } from '../../model/contract';
import type { Draft } from '../../model/draft';
import type { IPanelServices } from '../services';

/** What a field of the start form is given. */
export interface IFieldProps extends IPanelServices {
  schema: IStartSchema;
  field: IStartField;
  draft: Draft;
  /** How many ranks are on offer. */
  offer: number | null;
  value: unknown;
  /** What is wrong with it. */
  error: string | null;
  /** Without a value, the server chooses. */
  onChange: (value?: ReadonlyPartialJSONValue) => void;
}

/** What each widget is given. */
export interface IWidgetProps extends IFieldProps {
  /** The id of what its label is for. */
  id: string;
  /** What its control has, so that the error and the description are read with it. */
  aria: { 'aria-describedby': string; 'aria-invalid': boolean };
}
