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
