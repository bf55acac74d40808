import type {
  IVariable,
  IVariableForm,
  IVariables
} from '../model/variablesContract';

export function makeForm(changes: Partial<IVariableForm> = {}): IVariableForm {
  return {
    ranks: [0, 1],
    type: 'Tensor',
    items: null,
    shape: [2, 3],
    shard: '',
    dtypes: ['float32'],
    devices: ['cpu'],
    nbytes: 24,
    ...changes
  };
}

export function makeVariable(
  name: string,
  changes: Partial<IVariable> = {}
): IVariable {
  return {
    name,
    content: 'equal',
    nbytes: 24,
    forms: [makeForm()],
    differences: [],
    differing: 0,
    ...changes
  };
}

export function makeVariables(
  variables: IVariable[],
  changes: Partial<IVariables> = {}
): IVariables {
  return {
    variables,
    ranks: [0, 1],
    busy: [],
    silent: [],
    dead: [],
    sentences: [],
    ...changes
  };
}

/** It differs between ranks. */
export const MODEL = makeVariable('model', {
  content: 'differs',
  nbytes: 3 * 2 ** 20,
  forms: [makeForm({ type: 'Net', items: 7, shape: null })],
  differences: ['`model.w` differs on rank 1 since In[4].'],
  differing: 3
});
/** One rank has it. */
export const OWN = makeVariable('own', {
  content: 'single',
  forms: [makeForm({ ranks: [1], shape: [] })]
});
