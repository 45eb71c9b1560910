/**
 * Checks values against zod schemas, with error messages for people: which field is wrong, what it must be, what it was. The
 * error reports the first problem; `details` lists up to 50.
 *
 * Also finds fields that a schema does not know. These do not fail a request: they become warnings.
 */
import type { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import type { Warning } from '../../domain/event.ts'

const MAX_DETAILS = 50
const MAX_UNKNOWN_FIELDS = 20
const MAX_NAME_CHARS = 80

/** Returns the schema's output for `value`. Throws ErrandError `invalid_request`. */
export function check<S extends z.ZodType>(schema: S, value: unknown, root = 'The body'): z.output<S> {
  const result = schema.safeParse(value, { error: phrase })
  if (result.success) return result.data
  throw refuse(result.error.issues, root)
}

/** An `invalid_request` error for a rule that no schema expresses. `phrase` continues the field's name. */
export function wrongField(param: string, phrase: string): ErrandError {
  const message = `\`${param}\` ${phrase}.`
  return new ErrandError('invalid_request', message, { param, details: [{ param, message }] })
}

/** `['files', 2, 'name']` → `files[2].name` */
function paramName(path: readonly PropertyKey[]): string {
  let name = ''
  for (const key of path) {
    if (typeof key === 'number') name += `[${key}]`
    else name += `${name === '' ? '' : '.'}${clip(String(key))}`
  }
  return name
}

function refuse(issues: readonly z.core.$ZodIssue[], root: string): ErrandError {
  const details = issues.slice(0, MAX_DETAILS).map((issue) => {
    const param = paramName(issue.path)
    return param === ''
      ? { message: `${root} ${issue.message}.` }
      : { param, message: `\`${param}\` ${issue.message}.` }
  })
  const first = details[0]
  return new ErrandError('invalid_request', first?.message ?? `${root} is not valid.`, { param: first?.param, details })
}

/** Phrase for an issue, to follow the field's name in a sentence. A schema's own `error` overrides it. */
function phrase(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required'
      return `must be ${KINDS[issue.expected] ?? issue.expected}, not ${kindOf(issue.input)}`
    case 'too_big':
      return tooBig(issue.origin, Number(issue.maximum), issue.input)
    case 'too_small':
      return tooSmall(issue.origin, Number(issue.minimum), issue.inclusive !== false)
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map((v) => JSON.stringify(v)).join(', ')}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'is not an allowed name'
    case 'invalid_union':
      return 'matches none of the allowed forms'
    default:
      return 'is not valid'
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'a number' : `the number ${value}`
  if (typeof value === 'boolean') return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function tooBig(origin: string, maximum: number, input: unknown): string {
  const most = maximum.toLocaleString('en')
  if (origin === 'string') return `may have at most ${most} characters; it has ${lengthOf(input)}`
  if (origin === 'array') return `may have at most ${most} entries; it has ${lengthOf(input)}`
  return `must be at most ${most}`
}

function tooSmall(origin: string, minimum: number, inclusive: boolean): string {
  if (origin === 'string' || origin === 'array') return minimum === 1 ? 'must not be empty' : `is too short`
  return `must be ${inclusive ? 'at least' : 'more than'} ${minimum.toLocaleString('en')}`
}

function lengthOf(input: unknown): string {
  return (input as { length: number }).length.toLocaleString('en')
}

/** Returns a warning for each field of `value` that `schema` does not have, on every level. */
export function unknownFields(schema: z.ZodType, value: unknown, readOnly: ReadonlySet<string>): Warning[] {
  const found: PropertyKey[][] = []
  collectUnknown(schema as z.core.$ZodType, value, [], found)
  const warnings = found.slice(0, MAX_UNKNOWN_FIELDS).map((path): Warning => {
    const param = paramName(path)
    return readOnly.has(param)
      ? {
          code: 'unknown_field',
          param,
          message: `\`${param}\` is set by the server. The value in the request was ignored.`,
        }
      : { code: 'unknown_field', param, message: `The field \`${param}\` does not exist and was ignored.` }
  })
  const more = found.length - warnings.length
  if (more > 0) warnings.push({ code: 'unknown_field', message: `${more} more unknown fields were ignored.` })
  return warnings
}

function collectUnknown(schema: z.core.$ZodType, value: unknown, path: PropertyKey[], found: PropertyKey[][]): void {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional' || def.type === 'nullable') {
    collectUnknown(def.innerType, value, path, found)
  } else if (def.type === 'array' && Array.isArray(value)) {
    value.forEach((entry, i) => {
      collectUnknown(def.element, entry, [...path, i], found)
    })
  } else if (def.type === 'object' && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [key, entry] of Object.entries(value)) {
      const field = Object.hasOwn(def.shape, key) ? def.shape[key] : undefined
      if (field) collectUnknown(field, entry, [...path, key], found)
      else if (def.catchall === undefined) found.push([...path, key])
    }
  }
}

function clip(name: string): string {
  return name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name
}
