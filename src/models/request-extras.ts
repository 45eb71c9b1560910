/** Additions of the operator to each request to a model: HTTP headers and body fields (`headers`, `headersEnv`, `extraBody`). */
import type { ModelConfig } from '../config.ts'
import { isJsonObject, type JsonObject } from './json.ts'
import type { Env } from './providers/provider.ts'

export interface RequestExtras {
  readonly headers?: Readonly<Record<string, string>>
  /** Merged into the body. */
  readonly extraBody?: Readonly<JsonObject>
  /** Values from the environment, never to be shown. */
  readonly secrets?: readonly string[]
}

/** Returns a sentence if a variable is not set. `name` is the model's name in the catalogue. */
export function readExtras(
  name: string,
  { headers, headersEnv = {}, extraBody }: ModelConfig,
  env: Env,
): RequestExtras | string {
  const secret: Record<string, string> = {}
  for (const [header, variable] of Object.entries(headersEnv)) {
    const value = env[variable]?.trim()
    if (!value) {
      return `The environment variable ${variable} is not set. It must hold the header ${header} of the model ${name}.`
    }
    secret[header] = value
  }
  const all = { ...headers, ...secret }
  return {
    ...(Object.keys(all).length > 0 && { headers: all, secrets: Object.values(secret) }),
    ...(extraBody && { extraBody }),
  }
}

/** The body with the operator's fields. Objects are merged field by field; other values are replaced. */
export function mergeBody(body: JsonObject, extra: Readonly<JsonObject>): JsonObject {
  const merged = { ...body }
  for (const [name, value] of Object.entries(extra)) {
    const own = merged[name]
    merged[name] = isJsonObject(own) && isJsonObject(value) ? mergeBody(own, value) : value
  }
  return merged
}
