/** Access to members of JSON from outside, of unknown shape. */

export type JsonObject = Record<string, unknown>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The member as an object. Empty if it is no object. */
export function objectIn(object: JsonObject, key: string): JsonObject {
  const value = object[key]
  return isJsonObject(value) ? value : {}
}

/** The member as a whole number above 0. 0 if it is no such number. */
export function countIn(object: JsonObject, key: string): number {
  const value = object[key]
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}

export function stringIn(object: JsonObject, key: string): string {
  const value = object[key]
  return typeof value === 'string' ? value : ''
}
