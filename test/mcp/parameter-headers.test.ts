/** The check of `x-mcp-header` declarations, which decides whether a tool may be used. */
import { expect, it } from 'vitest'
import { headersAreUsable } from '../../src/tools/mcp/parameter-headers.ts'

const of = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest })
const header = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name })

it.each([
  ['none at all', of({ a: { type: 'string' } }), true],
  ['no schema', undefined, true],
  ['one', of({ a: header('Region') }), true],
  ['nested by properties', of({ a: of({ b: header('Region', 'integer') }) }), true],
  ['as data', of({ a: { type: 'object', default: { 'x-mcp-header': '' } } }), true],
  ['a property of that name', of({ a: { type: 'string' }, b: header('B') }), true],
  ['an empty name', of({ a: header('') }), false],
  ['a number for a name', of({ a: header(7) }), false],
  ['null for a name', of({ a: header(null) }), false],
  ['a space in it', of({ a: header('My Region') }), false],
  ['a line break in it', of({ a: header('A\r\nB') }), false],
  ['an object', of({ a: header('Region', 'object') }), false],
  ['a list', of({ a: header('Region', 'array') }), false],
  ['a number', of({ a: header('Region', 'number') }), false],
  ['the same twice', of({ a: header('Region'), b: header('region') }), false],
  ['at the root', { ...of({}), 'x-mcp-header': 'Root' }, false],
  ['in a list’s items', of({ a: { type: 'array', items: header('Region') } }), false],
  ['in an alternative', of({}, { anyOf: [of({ a: header('Region') })] }), false],
])('accepts or refuses x-mcp-header declarations: %s (%#)', (_name, schema, usable) => {
  expect(headersAreUsable(schema)).toBe(usable)
})
