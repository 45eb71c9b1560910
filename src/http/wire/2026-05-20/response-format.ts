/**
 * `responseFormat` of a request: decoding to a JSON Schema of limited size. A thread checks later whether it compiles
 * (engine/agent/schema-checks.ts).
 */
import { z } from 'zod'
import type { JsonSchema } from '../../../domain/interaction.ts'
import { wrongField } from '../../request/fields.ts'

const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 40
const MAX_REFERENCES = 2_000
/** Lower than MAX_REFERENCES: each dynamic reference is resolved at run time, through all enclosing schemas. */
const MAX_DYNAMIC_REFERENCES = 50
const REFERENCE = '$ref'
const DYNAMIC = new Set(['$dynamicRef', '$recursiveRef'])
const PARAM = 'responseFormat'
const DIALECT = /^https?:\/\/json-schema\.org\/(draft\/2020-12|draft-07)\/schema#?$/

export const responseFormatRequest = z.record(z.string(), z.unknown()).meta({
  description:
    'A JSON Schema that the answer must match; the answer is then JSON. Draft 2020-12, or draft-07 if `$schema` says so. Either the schema itself, or `{"type": "json_schema", "schema": …}`. At most 64 KiB.',
  examples: [{ type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }],
})

/** Accepts the schema itself or `{type: "json_schema", schema}`. Throws ErrandError `invalid_request`. */
export function decodeResponseFormat(sent: Readonly<Record<string, unknown>>): JsonSchema {
  const schema = sent.type === 'json_schema' ? sent.schema : sent
  if (!isObject(schema)) throw wrongField(PARAM, 'must have a JSON Schema object in `schema`')
  const size = Buffer.byteLength(JSON.stringify(schema))
  if (size > MAX_BYTES) throw wrongField(PARAM, `has ${size} bytes; at most ${MAX_BYTES} are allowed`)
  if (schema.$schema !== undefined && !DIALECT.test(String(schema.$schema))) {
    throw wrongField(PARAM, 'must have a `$schema` of draft 2020-12 or draft-07')
  }
  checkComplexity(schema)
  return schema
}

/** Limits depth and references. The thread that compiles the schema survives whatever these limits allow. */
function checkComplexity(schema: JsonSchema): void {
  let references = 0
  let dynamic = 0
  const open: { part: unknown; depth: number }[] = [{ part: schema, depth: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { part, depth } = next
    if (typeof part !== 'object' || part === null) continue
    if (depth > MAX_DEPTH) throw wrongField(PARAM, `is nested deeper than ${MAX_DEPTH} levels`)
    for (const [name, value] of Object.entries(part)) {
      if (name === REFERENCE) references++
      if (DYNAMIC.has(name)) dynamic++
      open.push({ part: value, depth: depth + 1 })
    }
  }
  if (references > MAX_REFERENCES) throw wrongField(PARAM, `has more than ${MAX_REFERENCES} references`)
  if (dynamic > MAX_DYNAMIC_REFERENCES) {
    throw wrongField(PARAM, `has more than ${MAX_DYNAMIC_REFERENCES} dynamic references`)
  }
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
