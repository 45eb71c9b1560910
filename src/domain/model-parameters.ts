/**
 * Parameters of model calls that callers, agents and the operator set. To add one, declare it here and map it in the
 * records of the providers (`src/models/providers`). Requests, responses, the configuration, the CLI and the OpenAPI document
 * take it from this list.
 */

/** The values that a parameter may have. `fields`: an object of parameters. */
export type ParameterKind = { readonly doc: string; readonly title?: string } & (
  | { readonly oneOf: readonly [string, ...string[]] }
  | { readonly min: number; readonly max: number }
  | { readonly fields: Readonly<Record<string, ParameterKind>> }
)

export const MODEL_PARAMETERS = {
  reasoning: {
    title: 'Reasoning',
    doc: 'How much the model reasons before it answers.',
    fields: {
      effort: {
        oneOf: ['none', 'low', 'medium', 'high', 'max'],
        doc: 'Reasoning effort. `none` turns reasoning off, `max` is the highest effort of the model. Absent: the provider’s default.',
      },
    },
  },
  temperature: {
    min: 0,
    max: 2,
    doc: 'Randomness of the answer. Many models accept it only without reasoning. Absent: the provider’s default.',
  },
  verbosity: {
    oneOf: ['low', 'medium', 'high'],
    doc: 'Length of the answer, for models that have such a setting. Absent: the provider’s default.',
  },
} as const satisfies Readonly<Record<string, ParameterKind>>

type Declared = typeof MODEL_PARAMETERS
export type ParameterName = keyof Declared

/** The value of a parameter of this kind. */
export type ParameterValue<Kind> = Kind extends { readonly oneOf: readonly (infer Value)[] }
  ? Value
  : Kind extends { readonly fields: infer Fields }
    ? { readonly [Name in keyof Fields]?: ParameterValue<Fields[Name]> }
    : number

export type ModelParameters = { readonly [Name in ParameterName]?: ParameterValue<Declared[Name]> }
export type Verbosity = ParameterValue<Declared['verbosity']>

export const PARAMETER_NAMES = Object.keys(MODEL_PARAMETERS) as readonly ParameterName[]

/** A parameter that was not sent as asked. */
export interface IgnoredParameter {
  /** Its path in a request, such as `reasoning.effort`. */
  readonly param: string
  /** A sentence for callers. */
  readonly message: string
}

/** The parameters among other fields. Undefined if none is set. */
export function parametersIn(fields: ModelParameters): ModelParameters | undefined {
  const set = PARAMETER_NAMES.filter((name) => fields[name] !== undefined)
  return set.length === 0 ? undefined : Object.fromEntries(set.map((name) => [name, fields[name]]))
}

/** `asked`, completed by `defaults`. Objects are merged field by field. */
export function withDefaults(asked: ModelParameters, defaults: ModelParameters): ModelParameters {
  const merged = PARAMETER_NAMES.map((name) => {
    const [own, usual] = [asked[name], defaults[name]]
    return [name, typeof own === 'object' && typeof usual === 'object' ? { ...usual, ...own } : (own ?? usual)] as const
  })
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined))
}
