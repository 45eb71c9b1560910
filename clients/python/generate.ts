/**
 * Generates the Python client's types from a server's OpenAPI document: `node clients/python/generate.ts OPENAPI.JSON DIRECTORY`
 * writes `shapes.py` (a class with its fields' types for each object of the API) and `_shapes.py` there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly description?: string
}

const [source, target] = process.argv.slice(2) as [string, string]
const document = JSON.parse(readFileSync(source, 'utf8'))
const schemas: Record<string, Schema> = document.components.schemas
/** Errors are exceptions, requests are keyword arguments, and lists are read page by page. */
const LEFT_OUT =
  /^(Error|EventStream|StreamEvent|SkillUpload|New.*|.*Patch|.*List|AgentVersions|Audit|.*Event|\w+Step)$/
const KEPT = /^(WebhookEvent|TraceStep)$/

const snake = (name: string) => name.replace(/(?<=[a-z0-9])([A-Z])/g, (letter) => `_${letter.toLowerCase()}`)
const resolve = (schema: Schema) => (schema.$ref ? schemas[schema.$ref.split('/').at(-1)!]! : schema)
const variants = (schema: Schema) => schema.anyOf ?? schema.oneOf
const isFree = ({ type, properties, additionalProperties, anyOf, oneOf }: Schema) =>
  !properties && !anyOf && !oneOf && [type].flat().includes('object') && additionalProperties !== false

/** Names of fields whose content the caller defines, such as labels. */
const free = new Set<string>()
function findFree(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  const { properties } = node as Schema
  for (const [name, schema] of Object.entries(properties ?? {})) {
    if (isFree(schema) || variants(schema)?.some(isFree)) free.add(name)
  }
  for (const part of Object.values(node)) findFree(part)
}
findFree(schemas)

function typeOf(schema: Schema): string {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1)!
    return isShown(name) ? name : 'Record'
  }
  if (schema.const !== undefined) return `Literal[${JSON.stringify(schema.const)}]`
  if (schema.enum)
    return `Literal[${schema.enum
      .filter((value) => value !== null)
      .map((value) => JSON.stringify(value))
      .join(', ')}]`
  const union = variants(schema)
  if (union) return [...new Set(union.map(typeOf))].sort().join(' | ')
  const [type] = [schema.type].flat().filter((each) => each !== 'null')
  if (type === 'array') return `list[${schema.items ? typeOf(schema.items) : 'Any'}]`
  if (type === 'object') return schema.properties ? 'Record' : 'dict[str, Any]'
  return { string: 'str', integer: 'int', number: 'float', boolean: 'bool' }[type ?? ''] ?? 'Any'
}

function isShown(name: string): boolean {
  return name in schemas && (KEPT.test(name) || !LEFT_OUT.test(name))
}

/** Fields of a schema. A union has the fields of all its variants, as optional ones. */
function fieldsOf(schema: Schema): [string, string][] {
  const parts = variants(schema)?.map(resolve) ?? [schema]
  const names = [...new Set(parts.flatMap((part) => Object.keys(part.properties ?? {})))]
  return names.map((name) => {
    const having = parts.filter((part) => part.properties?.[name])
    const types = [...new Set(having.map((part) => typeOf(part.properties![name]!)))].join(' | ')
    const always = parts.every((part) => part.required?.includes(name))
    return [snake(name), always || types === 'Any' ? types : `${types} | None`]
  })
}

const classes = Object.entries(schemas)
  .filter(
    ([name, schema]) =>
      isShown(name) && (schema.properties || variants(schema)?.every((part) => resolve(part).properties)),
  )
  .map(([name, schema]) => {
    const about = (schema.description ?? name).replaceAll('\\', '\\\\').replaceAll('"""', "'''")
    const fields = fieldsOf(schema).map(([field, type]) => `    ${field}: ${type}`)
    return `class ${name}(Record):\n    """${about}"""\n\n${fields.join('\n')}\n`
  })

const MADE = '# Made by clients/python/generate.ts from the server’s OpenAPI document.\n'
writeFileSync(
  join(target, '_shapes.py'),
  `${MADE}\n#: Fields whose own fields are the caller’s, not the API’s.\nFREE_FORM = frozenset(\n    {\n${[...free]
    .sort()
    .map((name) => `        "${name}",\n`)
    .join('')}    }\n)\n`,
)
writeFileSync(
  join(target, 'shapes.py'),
  `${MADE}"""The objects of the API."""

from __future__ import annotations

from typing import Any, Literal

from .records import Record


class Event(Record):
    """One event of a stream: its number, its name, its data. There may be names that this version does not know."""

    id: int
    event: str
    data: Record


${classes.join('\n\n')}`,
)
