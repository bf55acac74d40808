import { joinWords, splitWords } from './shellWords';
import type {
  IJobRequest,
  ISubmitField,
  ISubmitSchema
} from './submitContract';
import { trans } from './trans';

export interface IParameter {
  name: string;
  /** Several, with commas between them, make one job each. */
  values: string;
}

/** What has been typed into the form. */
export interface IJobDraft {
  what: 'command' | 'notebook';
  /** By field. */
  texts: Readonly<Record<string, string>>;
  flags: Readonly<Record<string, boolean>>;
  parameters: readonly IParameter[];
  /** What is asked for beside what the form shows. */
  others: IJobRequest;
}

/** What is to be asked for, and what is wrong with it by field. */
interface IRead {
  request: IJobRequest;
  errors: Readonly<Record<string, string>>;
}

/** Scripts, which the server reads; they may be named without a folder. */
const SCRIPT = /\.(sh|bash|py)$/;

export function readDraft(
  { properties }: ISubmitSchema,
  draft: IJobDraft
): IRead {
  const request: IJobRequest = { ...draft.others };
  const errors: Record<string, string> = {};
  const chdir = draft.texts.chdir?.trim() ?? '';
  for (const [name, field] of Object.entries(properties)) {
    const text = draft.texts[name]?.trim() ?? '';
    switch (field['x-widget']) {
      case 'command':
        if (draft.what === 'command') {
          const words = splitWords(text);
          if (!words) {
            errors[name] = trans.__('A quotation mark is not closed.');
          } else if (words.length) {
            const [program, ...rest] = words;
            const isPath = SCRIPT.test(program) || program.includes('/');
            const start = isPath ? inFolder(program, chdir) : program;
            request.command = [start, ...rest];
          }
        }
        break;
      case 'notebook':
        if (draft.what === 'notebook' && text) {
          request.notebook = text;
        }
        break;
      case 'parameters':
        Object.assign(request, readParameters(draft));
        break;
      case 'flag':
        if (draft.flags[name]) {
          request[name] = true;
        }
        break;
      case 'lines':
        if (text) {
          request[name] = text.split('\n').filter(line => line.trim());
        }
        break;
      default:
        if (text && field.type === 'integer') {
          readNumber(name, field, text);
        } else if (text) {
          request[name] = name === 'venv' ? inFolder(text, chdir) : text;
        }
    }
  }
  return { request, errors };

  function readNumber(name: string, field: ISubmitField, text: string): void {
    const isWhole = /^-?\d{1,9}$/.test(text);
    if (isWhole && Number(text) >= (field.minimum ?? -Infinity)) {
      request[name] = Number(text);
    } else {
      errors[name] = trans.__('This is a whole number, such as 2.');
    }
  }
}

/** What asks for the same again. */
export function draftOf(
  { properties }: ISubmitSchema,
  request: IJobRequest
): IJobDraft {
  const texts: Record<string, string> = {};
  const flags: Record<string, boolean> = {};
  for (const name of Object.keys(properties)) {
    const value = request[name];
    if (typeof value === 'boolean') {
      flags[name] = value;
    } else if (name !== 'param' && Array.isArray(value)) {
      texts[name] = value.join('\n');
    } else if (typeof value === 'string' || typeof value === 'number') {
      texts[name] = String(value);
    }
  }
  const start = `${request.chdir ?? ''}/`;
  const short = (path: string) =>
    start.length > 1 && path.startsWith(start)
      ? path.slice(start.length)
      : path;
  if (request.command) {
    const [program, ...words] = request.command;
    texts.command = joinWords([short(program), ...words]);
  }
  if (request.venv) {
    texts.venv = short(request.venv);
  }
  const others: IJobRequest = {};
  for (const [name, value] of Object.entries(request)) {
    if (!(name in properties) && name !== 'parameter') {
      others[name] = value;
    }
  }
  const swept = new Map((request.param ?? []).map(split));
  const parameters = (request.parameter ?? [])
    .map(split)
    .filter(([name]) => !swept.has(name));
  return {
    what: request.notebook ? 'notebook' : 'command',
    texts,
    flags,
    others,
    parameters: [...parameters, ...swept].map(([name, values]) => ({
      name,
      values
    }))
  };
}

/** A path that is relative to the folder of the job. */
function inFolder(path: string, folder: string): string {
  return folder && !/^[/~]/.test(path)
    ? `${folder}/${path.replace(/^(\.\/)+/, '')}`
    : path;
}

/** A notebook has variables set; where there are several values, by those of a sweep. */
function readParameters({ what, parameters }: IJobDraft): IJobRequest {
  const given = parameters.filter(({ name, values }) => name && values);
  const sweep = what === 'command' ? given : given.filter(isSweep);
  const request: IJobRequest = {};
  if (what === 'notebook' && given.length) {
    request.parameter = given.map(parameter =>
      isSweep(parameter)
        ? `${parameter.name}={${parameter.name}}`
        : `${parameter.name}=${parameter.values}`
    );
  }
  if (sweep.length) {
    request.param = sweep.map(({ name, values }) => {
      const listed = values.split(',').map(value => value.trim());
      return `${name}=${listed.join()}`;
    });
  }
  return request;
}

/** `0.1, 0.01`; not `[1, 2]`, nor `"one, two"`. */
function isSweep({ values }: IParameter): boolean {
  return values.includes(',') && !/[[\](){}'"]/.test(values);
}

function split(text: string): [string, string] {
  const place = text.indexOf('=');
  return [text.slice(0, place), text.slice(place + 1)];
}
