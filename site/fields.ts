/** Tables of fields and parameters from the schemas of the OpenAPI document. */

import type { Json, JsonObject } from '../src/http/openapi/openapi.ts'
import { type Html, html, inline } from './html.ts'

const REF_PREFIX = '#/components/schemas/'

export interface Row {
  readonly name: string
  readonly required: boolean
  readonly type: Html
  readonly bounds: string
  readonly description: string
}

/** The fields of an object schema. Empty for other schemas. */
export function fieldRows(schema: JsonObject): Row[] {
  const required = new Set((schema.required ?? []) as string[])
  return Object.entries((schema.properties ?? {}) as Record<string, JsonObject>).map(([name, field]) => ({
    name,
    required: required.has(name),
    type: typeOf(field),
    bounds: boundsOf(field),
    description: String(field.description ?? ''),
  }))
}

/** `location`: `path`, `query` or `header`. */
export function parameterRows(parameters: readonly JsonObject[], location: string): Row[] {
  return parameters
    .filter((parameter) => parameter.in === location)
    .map((parameter) => ({
      name: String(parameter.name),
      required: parameter.required === true,
      type: typeOf(parameter.schema as JsonObject),
      bounds: boundsOf(parameter.schema as JsonObject),
      description: String(parameter.description ?? ''),
    }))
}

export function table(title: string, rows: readonly Row[], level = 4): Html {
  if (rows.length === 0) return html``
  return html`<h${level}>${title}</h${level}><dl class="fields">${rows.map(
    (row) =>
      html`<div><dt><code>${row.name}</code>${row.required ? html`<em>required</em>` : ''}<span>${row.type}${
        row.bounds === '' ? '' : html`, ${row.bounds}`
      }</span></dt><dd>${inline(row.description)}</dd></div>`,
  )}</dl>`
}

/** A short name of a schema's type, with links to objects. Leaves out `null`, which every optional field accepts. */
export function typeOf(schema: JsonObject): Html {
  if (typeof schema.$ref === 'string') return link(schema.$ref)
  const choices = (schema.anyOf ?? schema.oneOf) as JsonObject[] | undefined
  if (choices) return alternatives(choices.filter((choice) => choice.type !== 'null').map(typeOf))
  if (Array.isArray(schema.enum)) return alternatives(schema.enum.filter(notNull).map((value) => code(value as Json)))
  if (schema.const !== undefined) return code(schema.const)
  const type = [schema.type ?? 'any'].flat().find(notNull)
  if (type === 'array') return html`list of ${typeOf((schema.items ?? {}) as JsonObject)}`
  if (type === 'object' && isObject(schema.additionalProperties) && !schema.properties) {
    return html`map of ${typeOf(schema.additionalProperties)}`
  }
  return html`${String(type)}`
}

export function schemaName(ref: string): string {
  return ref.slice(REF_PREFIX.length)
}

function link(ref: string): Html {
  return html`<a href="objects.html#${schemaName(ref)}">${schemaName(ref)}</a>`
}

function alternatives(types: readonly Html[]): Html {
  return html`${types.map((type, i) => (i === 0 ? type : html` or ${type}`))}`
}

function code(value: Json): Html {
  return html`<code>${JSON.stringify(value)}</code>`
}

function notNull(value: unknown): boolean {
  return value !== null && value !== 'null'
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function boundsOf(schema: JsonObject): string {
  const { minimum, maximum, maxLength, maxItems, maxProperties } = schema
  if (typeof minimum === 'number' && minimum > Number.MIN_SAFE_INTEGER) {
    return typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
      ? `${grouped(minimum)} to ${grouped(maximum)}`
      : `at least ${grouped(minimum)}`
  }
  if (typeof maxLength === 'number') return `at most ${grouped(maxLength)} characters`
  if (typeof maxItems === 'number') return `at most ${grouped(maxItems)}`
  if (typeof maxProperties === 'number') return `at most ${grouped(maxProperties)}`
  return ''
}

function grouped(value: number): string {
  return value.toLocaleString('en')
}
