/** Schemas of the model parameters, for requests and for the configuration. The errors continue the field's name in a sentence. */
import * as z from 'zod'
import {
  MODEL_PARAMETERS,
  type ModelParameters,
  type ParameterKind,
  type ParameterName,
} from '../domain/model-parameters.ts'

export type ParameterSchemas<Absent> = { readonly [Name in ParameterName]: z.ZodType<ModelParameters[Name] | Absent> }

interface Form {
  /** Applied to each parameter, and to the fields of objects. */
  readonly optional: (schema: z.ZodType) => z.ZodType
  /** True if an object with an unknown field is refused. */
  readonly strict?: boolean
  /** Ends the titles of objects: an object that accepts `null` has another title than one that does not. */
  readonly titleSuffix?: string
}

/** Schemas by parameter. */
export function parameterSchemas<Absent>(form: Form): ParameterSchemas<Absent> {
  return eachSchema(MODEL_PARAMETERS, form) as unknown as ParameterSchemas<Absent>
}

function eachSchema(kinds: Readonly<Record<string, ParameterKind>>, form: Form): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => {
      const { doc: description, title } = kind
      const meta = { ...(title && { title: title + (form.titleSuffix ?? '') }), description }
      return [name, form.optional(schemaOf(kind, form).meta(meta))]
    }),
  )
}

function schemaOf(kind: ParameterKind, form: Form): z.ZodType {
  if ('oneOf' in kind) return z.enum(kind.oneOf, `must be one of ${kind.oneOf.join(', ')}`)
  if ('fields' in kind) {
    const error = `must be an object with ${Object.keys(kind.fields).join(', ')}`
    const object = form.strict ? z.strictObject : z.object
    return object(eachSchema(kind.fields, form), {
      error: ({ code }) => (code === 'invalid_type' ? error : undefined),
    })
  }
  const error = `must be a number from ${kind.min} to ${kind.max}`
  return z.number(error).min(kind.min, error).max(kind.max, error)
}
