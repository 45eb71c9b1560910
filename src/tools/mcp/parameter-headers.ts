/**
 * Parameters that a server of the 2026 protocol requires in HTTP headers too (`x-mcp-header` in a tool's schema; SEP-2243).
 * The library sends them. This file checks the declarations: a tool with an invalid one must not be used.
 */
const KEY = 'x-mcp-header'
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
const TYPES = new Set<unknown>(['string', 'integer', 'boolean'])
/** Keywords whose content is data, not a schema. */
const DATA = new Set(['const', 'default', 'enum', 'examples'])
const MAX_DEPTH = 40

/** Whether every declaration is on a primitive reached only through `properties`, with a valid and unique header name. */
export function headersAreUsable(inputSchema: unknown): boolean {
  const names = new Set<string>()

  function isUsable(node: unknown, named: boolean, depth: number): boolean {
    if (typeof node !== 'object' || node === null || depth > MAX_DEPTH) return true
    const schema = node as Readonly<Record<string, unknown>>
    if (Object.hasOwn(schema, KEY)) {
      const name = schema[KEY]
      if (!named || typeof name !== 'string' || !TOKEN.test(name) || !TYPES.has(schema.type)) return false
      if (names.has(name.toLowerCase())) return false
      names.add(name.toLowerCase())
    }
    return Object.entries(schema).every(([key, value]) => {
      if (DATA.has(key) || key === KEY) return true
      if (key !== 'properties') return areUsable([value], false, depth)
      return areUsable(Object.values(value ?? {}), depth === 0 || named, depth)
    })
  }

  /** Lists and maps of schemas count as schemas: their content has no property name. */
  function areUsable(nodes: readonly unknown[], named: boolean, depth: number): boolean {
    return nodes.every((node) => isUsable(node, named, depth + 1))
  }

  return isUsable(inputSchema, false, 0)
}
