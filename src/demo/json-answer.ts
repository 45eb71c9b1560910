/** An answer as JSON that conforms to a caller's schema. Values are taken from the answer's facts, by property name. */
import type { JsonSchema } from '../domain/interaction.ts'
import type { Answer, Fact } from './task.ts'
import { canonical } from './words.ts'

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

const MAX_DEPTH = 8
/** Maximum number of values in the whole answer: nested `minItems` could ask for any number. */
const MAX_VALUES = 500
/** Maximum length of a text that `minLength` asks for. */
const MAX_PADDED = 10_000

/** The answer, and how many more values the JSON may have. */
type Source = Answer & { readonly left: { values: number } }

export function jsonAnswer(schema: JsonSchema, answer: Answer): string {
  return JSON.stringify(fill(schema, '', { ...answer, left: { values: MAX_VALUES } }, MAX_DEPTH))
}

function fill(schema: JsonSchema, name: string, answer: Source, depth: number): Json {
  if (answer.left.values-- <= 0) return null
  if ('const' in schema) return schema.const as Json
  if (Array.isArray(schema.enum)) return chosen(schema.enum as Json[], name, answer)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (choices?.[0] && depth > 0) return fill(choices[0], name, answer, depth - 1)
  switch (typeOf(schema)) {
    case 'object':
      return depth === 0 ? {} : objectOf(schema, answer, depth)
    case 'array':
      return arrayOf(schema, name, answer, depth)
    case 'number':
      return within(schema, numberFor(name, answer))
    case 'integer':
      return within(schema, Math.round(numberFor(name, answer)))
    case 'boolean':
      return booleanFor(name, answer)
    case 'null':
      return null
    default:
      return sized(schema, stringFor(name, answer))
  }
}

function typeOf(schema: JsonSchema): unknown {
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type
  return type ?? (schema.properties ? 'object' : schema.items ? 'array' : 'string')
}

function objectOf(schema: JsonSchema, answer: Source, depth: number): Json {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>
  return Object.fromEntries(
    Object.entries(properties).map(([name, inner]) => [name, fill(inner, name, answer, depth - 1)]),
  )
}

/** One item for each group or entry of the fact that fits; at least `minItems`, at most `maxItems`. */
function arrayOf(schema: JsonSchema, name: string, answer: Source, depth: number): Json {
  const items = (schema.items ?? { type: 'string' }) as JsonSchema
  const list = bestFact(answer.facts, name, (fact) => Array.isArray(fact.value))?.value
  const rows = Array.isArray(list) ? (list as readonly Readonly<Record<string, number | string>>[]) : []
  const filled =
    depth === 0 ? [] : rows.map((row) => fill(items, name, { ...answer, facts: factsOfRow(row) }, depth - 1))
  const least = typeof schema.minItems === 'number' ? schema.minItems : 0
  while (depth > 0 && filled.length < least && answer.left.values > 0) filled.push(fill(items, name, answer, depth - 1))
  return typeof schema.maxItems === 'number' ? filled.slice(0, schema.maxItems) : filled
}

function factsOfRow(row: Readonly<Record<string, number | string>>): Fact[] {
  return Object.entries(row).map(([key, value]) => ({ names: [...wordsOf(key), key], value }))
}

function numberFor(name: string, answer: Answer): number {
  const fact = bestFact(answer.facts, name, ({ value }) => typeof value === 'number')
  return typeof fact?.value === 'number' && Number.isFinite(fact.value) ? fact.value : 0
}

function booleanFor(name: string, answer: Answer): boolean {
  const fact = answer.facts.find(
    ({ value, names }) => typeof value === 'boolean' && names.some((word) => wordsOf(name).includes(word)),
  )
  return typeof fact?.value === 'boolean' ? fact.value : answer.facts.length > 0
}

/** The answer's text, unless the property has the name of a fact. */
function stringFor(name: string, answer: Answer): string {
  const words = wordsOf(name)
  const fact = answer.facts.find(
    ({ names, value }) => !Array.isArray(value) && words.some((word) => names.map(canonical).includes(word)),
  )
  if (fact && !/answer|summary|text|explanation|message|description/i.test(name)) return String(fact.value)
  return answer.text
}

function chosen(options: readonly Json[], name: string, answer: Answer): Json {
  const said = stringFor(name, answer).toLowerCase()
  return (
    options.find((option) => typeof option === 'string' && said.includes(option.toLowerCase())) ?? options[0] ?? null
  )
}

/** The fact whose names share most words with the property's name. Without any, the first of the right kind. */
function bestFact(facts: readonly Fact[], name: string, fits: (fact: Fact) => boolean): Fact | undefined {
  const words = wordsOf(name)
  const score = (fact: Fact) => words.filter((word) => fact.names.map(canonical).includes(word)).length
  return facts.filter(fits).sort((a, b) => score(b) - score(a))[0]
}

function wordsOf(name: string): string[] {
  return name
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map(canonical)
}

function within(schema: JsonSchema, value: number): number {
  const low = typeof schema.minimum === 'number' ? schema.minimum : -Infinity
  const high = typeof schema.maximum === 'number' ? schema.maximum : Infinity
  return Math.min(high, Math.max(low, value))
}

function sized(schema: JsonSchema, text: string): string {
  const most = typeof schema.maxLength === 'number' ? schema.maxLength : Infinity
  const least = typeof schema.minLength === 'number' ? schema.minLength : 0
  return text.slice(0, most).padEnd(Math.min(least, MAX_PADDED), '.')
}
