import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { IStartChoice, IStartField, IStartSchema } from './contract';
import { trans } from './trans';

/** An environment variable while it is written. */
export interface IVariable {
  name: string;
  /** Null after the page was loaded again: values may be secrets, and are not kept. */
  value: string | null;
}

/**
 * What a user has chosen so far, by field: as in a choice, but that GPUs are named by their labels,
 * and variables are a list. What is left to the server is not there.
 */
export type Draft = Readonly<
  Record<string, ReadonlyPartialJSONValue | undefined>
>;

/** The name of the field with a widget; a machine without GPUs has none for those. */
function fieldOf(
  schema: IStartSchema,
  widget: IStartField['x-widget']
): string | undefined {
  const fields = Object.entries(schema.properties);
  return fields.find(([, field]) => field['x-widget'] === widget)?.[0];
}

/** The labels of the GPUs that are picked. */
export function pickedGpus(schema: IStartSchema, draft: Draft): string[] {
  const value = draft[fieldOf(schema, 'gpus') ?? ''];
  return Array.isArray(value) ? value.map(String) : [];
}

/** How many of the ranks run on the CPU, although there are GPUs. */
export function ranksOnCpu(draft: Draft): number {
  return Number(draft.cpu_ranks ?? 0) || 0;
}

/** One rank per GPU that is picked, or that is on offer, and those on the CPU; null if nobody knows. */
export function offeredRanks(
  schema: IStartSchema,
  draft: Draft,
  offer: number | null
): number | null {
  const gpus = pickedGpus(schema, draft).length || offer;
  return gpus === null ? null : gpus + ranksOnCpu(draft);
}

/** What may be kept of a draft: of environment variables only the names, as values may be secrets. */
export function withoutValues(draft: Draft): Draft {
  const kept = (value: Draft[string]) =>
    Array.isArray(value) && value.some(isVariable)
      ? named(value).map(({ name }) => ({ name, value: null }))
      : value;
  return Object.fromEntries(
    Object.entries(draft)
      .map(([name, value]) => [name, kept(value)] as const)
      .filter(([, value]) => !Array.isArray(value) || value.length > 0)
  );
}

/** An empty row is about to be written. */
function named(value: unknown): IVariable[] {
  return variablesOf(value).filter(({ name }) => name.trim());
}

function isVariable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'value' in value;
}

/** What was written as variables. */
export function variablesOf(value: unknown): IVariable[] {
  return Array.isArray(value) ? (value as IVariable[]) : [];
}

/** How many ranks: what the user says, else what is offered; null if that is left to the server. */
export function ranksOf(
  schema: IStartSchema,
  draft: Draft,
  offer: number | null
): number | null {
  const chosen = draft[fieldOf(schema, 'ranks') ?? ''];
  return chosen === undefined
    ? offeredRanks(schema, draft, offer)
    : Number(chosen ?? NaN);
}

/** What the server is to be asked for; fields that it does not know are left out. */
export function toChoice(
  schema: IStartSchema,
  draft: Draft,
  offer: number | null
): IStartChoice {
  const choice: IStartChoice = {};
  for (const [name, field] of Object.entries(schema.properties)) {
    const value = draft[name];
    switch (field['x-widget']) {
      case 'ranks': {
        const ranks = ranksOf(schema, draft, offer);
        if (ranks !== null) {
          choice[name] = ranks;
        }
        break;
      }
      case 'gpus':
        if (pickedGpus(schema, draft).length) {
          choice[name] = pickedGpus(schema, draft).map(toGpuId);
        }
        break;
      case 'env': {
        const variables = named(value);
        if (variables.length) {
          choice[name] = Object.fromEntries(
            variables.map(({ name, value }) => [name.trim(), value ?? ''])
          );
        }
        break;
      }
      default:
        if (value !== undefined && value !== null) {
          choice[name] = value;
        }
    }
  }
  return choice;
}

function toGpuId(label: string): number | string {
  return /^\d+$/.test(label) ? Number(label) : label;
}

/** What is wrong with a draft, by field. */
export function errorsOf(
  schema: IStartSchema,
  draft: Draft,
  offer: number | null
): Record<string, string> {
  const errors: Record<string, string> = {};
  for (const [name, field] of Object.entries(schema.properties)) {
    const error = errorOf(name, field);
    if (error) {
      errors[name] = error;
    }
  }
  return errors;

  function errorOf(name: string, field: IStartField): string | null {
    switch (field['x-widget']) {
      case 'ranks': {
        const ranks = ranksOf(schema, draft, offer);
        return ranks === null ? null : wrongNumber(ranks, field);
      }
      case 'number':
      case 'bytes':
        return draft[name] === undefined
          ? null
          : wrongNumber(Number(draft[name] ?? NaN), field);
      case 'env':
        return wrongVariables(variablesOf(draft[name]));
      default:
        return null;
    }
  }
}

function wrongNumber(value: number, field: IStartField): string | null {
  const { type, minimum, maximum } = field;
  if (!Number.isFinite(value)) {
    return trans.__('Enter a number.');
  }
  if (value <= (field.exclusiveMinimum ?? -Infinity)) {
    return trans.__('Enter a number above %1.', field.exclusiveMinimum);
  }
  const isIn = value >= (minimum ?? value) && value <= (maximum ?? value);
  if (isIn && (type !== 'integer' || Number.isInteger(value))) {
    return null;
  }
  const unit = field['x-widget'] === 'bytes' ? 2 ** 30 : 1;
  if (minimum === undefined && maximum === undefined) {
    return trans.__('Enter a whole number.');
  }
  if (maximum === undefined) {
    return trans.__('Enter a number of %1 or more.', (minimum ?? 0) / unit);
  }
  return trans.__(
    'Enter a number from %1 to %2.',
    (minimum ?? 0) / unit,
    maximum / unit
  );
}

function wrongVariables(variables: IVariable[]): string | null {
  const names = variables
    // An empty row is about to be written.
    .filter(({ name, value }) => name || value)
    .map(({ name }) => name.trim());
  const twice = names.find((name, index) => names.indexOf(name) < index);
  const bad = names.find(name => /[\s=]/.test(name));
  const lost = variables.find(({ name, value }) => name && value === null);
  if (names.includes('')) {
    return trans.__('A variable needs a name.');
  }
  if (bad !== undefined) {
    return trans.__('“%1” is not a valid variable name.', bad);
  }
  if (twice !== undefined) {
    return trans.__('“%1” is listed twice.', twice);
  }
  return lost
    ? trans.__(
        'Enter the value of “%1” again: values are not saved.',
        lost.name
      )
    : null;
}
