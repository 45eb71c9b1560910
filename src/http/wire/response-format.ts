/** `responseFormat` → a JSON Schema that is known to compile, so that no run fails on it later. */
import type { JsonSchema } from '../../domain/interaction.ts'
import { compileSchema } from '../../engine/response-format.ts'
import { wrongField } from '../fields.ts'

const MAX_BYTES = 64 * 1024
const PARAM = 'responseFormat'
const DIALECT = /^https?:\/\/json-schema\.org\/(draft\/2020-12|draft-07)\/schema#?$/

/** Bare, or as `{type: "json_schema", schema}`. Throws ErrandError `invalid_request` with param `responseFormat`. */
export function decodeResponseFormat(sent: Readonly<Record<string, unknown>>): JsonSchema {
  const schema = sent.type === 'json_schema' ? sent.schema : sent
  if (!isObject(schema)) throw wrongField(PARAM, 'must have a JSON Schema object in `schema`')
  const size = Buffer.byteLength(JSON.stringify(schema))
  if (size > MAX_BYTES) throw wrongField(PARAM, `has ${size} bytes; at most ${MAX_BYTES} are taken`)
  if (schema.$schema !== undefined && !DIALECT.test(String(schema.$schema))) {
    throw wrongField(PARAM, 'must be of draft 2020-12 or draft-07, by its `$schema`')
  }
  try {
    compileSchema(schema)
  } catch (error) {
    // What the compiler says may quote the whole schema.
    throw wrongField(PARAM, `is not a usable JSON Schema: ${String((error as Error).message).slice(0, 300)}`)
  }
  return schema
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
