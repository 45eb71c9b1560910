/**
 * Checks a tool call's arguments. One zod schema is the source of both the JSON Schema that the model gets and the check, so
 * the two can't differ. The error message names the argument, what it must be, and what it was.
 */
import { z } from 'zod'
import type { JsonSchema } from '../domain/interaction.ts'

export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }

export interface ToolArguments<T> {
  readonly parameters: JsonSchema
  check(args: Readonly<Record<string, unknown>>): Checked<T>
}

/** Every check of the schema needs a message that continues the argument's name: `must be a string`. */
export function toolArguments<S extends z.ZodObject>(tool: string, schema: S): ToolArguments<z.output<S>> {
  const { $schema: _dialect, ...parameters } = z.toJSONSchema(schema, {
    io: 'input',
    // Such high upper bounds only cost tokens, and some providers reject them.
    override: ({ jsonSchema }) => {
      delete jsonSchema.maxLength
      delete jsonSchema.maximum
    },
  })
  const known = Object.keys(schema.shape)
  return {
    parameters,
    check(args) {
      const given = withoutNull(args)
      const parsed = schema.safeParse(given)
      if (parsed.success) return { ok: true, value: parsed.data }
      const problems = parsed.error.issues.map((issue) => {
        const value = issue.path.reduce<unknown>((within, key) => (within as Fields | undefined)?.[key], given)
        const name = nameOf(issue.path)
        return value === undefined ? `\`${name}\` is missing` : `\`${name}\` ${issue.message}, got ${show(value)}`
      })
      const unknown = Object.keys(given).filter((name) => !known.includes(name))
      if (unknown.length > 0) problems.push(`there is no argument ${unknown.slice(0, 5).map(quote).join(', ')}`)
      return {
        ok: false,
        message: `${tool} did nothing: ${[...new Set(problems)].join('; ')}. Its arguments are ${known.map(quote).join(', ')}.`,
      }
    },
  }
}

type Fields = Readonly<Record<PropertyKey, unknown>>

/** Some models send `null` for an optional argument that they leave out. Also for the fields of objects in a list. */
function withoutNull(fields: Fields): Fields {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  const clean = (value: unknown) =>
    Array.isArray(value) ? value.map((each) => (isObject(each) ? withoutNull(each) : each)) : value
  const given = Object.entries(fields).filter(([, value]) => value !== null)
  return Object.fromEntries(given.map(([name, value]) => [name, clean(value)]))
}

/** `edits[2].find` */
function nameOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'arguments'
  return path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? String(key) : `.${String(key)}`))
    .join('')
}

function quote(name: string): string {
  return `\`${name.slice(0, 60)}\``
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length} characters)` : text
}
