/** The public methods of the clients with their signatures, read from the clients' sources. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './contents.ts'

export interface Method {
  /** The same in both languages, in camel case: `interactions.create`. */
  readonly key: string
  /** The expression that callers write: `errand.interactions.create`. */
  readonly call: string
  readonly signature: string
}

export interface Group {
  readonly title: string
  readonly methods: readonly Method[]
}

interface Scope {
  readonly title: string
  readonly prefix: string
  /** The expression before the method's name. */
  readonly receiver: string
  readonly ts: readonly [file: string, className: string]
  readonly python: string
}

const resource = (title: string, prefix: string): Scope => ({
  title,
  prefix,
  receiver: `errand.${prefix}`,
  ts: [`${prefix}.ts`, title],
  python: title,
})

const SCOPES: readonly Scope[] = [
  ...['Interactions', 'Agents', 'Skills', 'Credentials', 'Files'].map((title) => resource(title, title.toLowerCase())),
  {
    title: 'Streams',
    prefix: 'stream',
    receiver: 'stream',
    ts: ['stream.ts', 'InteractionStream'],
    python: 'InteractionStream',
  },
  { title: 'Lists', prefix: 'list', receiver: 'list', ts: ['paging.ts', 'List'], python: 'List' },
  { title: 'Client', prefix: 'errand', receiver: 'errand', ts: ['errand.ts', 'Errand'], python: 'Errand' },
]

const TS_FUNCTIONS = ['files.ts', 'node.ts', 'webhooks.ts']
const PYTHON_FUNCTIONS = { 'files.py': /^def (input_\w+)/, 'webhooks.py': /^def (verify_\w+)/ }

export function typescriptMethods(): readonly Group[] {
  const source = (file: string) => readFileSync(join(ROOT, 'clients/typescript/src', file), 'utf8')
  const groups = SCOPES.map(({ title, prefix, receiver, ts: [file, name] }) => ({
    title,
    methods: membersOf(source(file), new RegExp(`^export class ${name}\\b`), TS_MEMBER, ' {').map(
      ({ name, signature }) => ({
        key: `${prefix}.${name}`,
        call: `${receiver}.${name}`,
        signature: signature.replace(/^async /, '').replace(/^get (\w+)\(\)/, '$1'),
      }),
    ),
  }))
  const functions = TS_FUNCTIONS.flatMap((file) =>
    declarations(source(file), /^export (?:async )?function (\w+)/, ' {').map(({ name, signature }) => ({
      key: name,
      call: name,
      signature: signature.replace(/^export (?:async )?/, ''),
    })),
  )
  return [...groups, { title: 'Functions', methods: functions }]
}

export function pythonMethods(): readonly Group[] {
  const source = (file: string) => readFileSync(join(ROOT, 'clients/python/src/errand', file), 'utf8')
  const groups = SCOPES.map(({ title, prefix, receiver, python }) => ({
    title,
    methods: membersOf(source('_sync.py'), new RegExp(`^class ${python}\\b`), PYTHON_MEMBER, ':').map(
      ({ name, signature }) => ({
        key: `${prefix}.${camel(name)}`,
        call: `${receiver}.${name}`,
        signature: pythonSignature(signature),
      }),
    ),
  }))
  const functions = Object.entries(PYTHON_FUNCTIONS).flatMap(([file, pattern]) =>
    declarations(source(file), pattern, ':').map(({ name, signature }) => ({
      key: camel(name),
      call: name,
      signature: pythonSignature(signature),
    })),
  )
  return [...groups, { title: 'Functions', methods: functions }]
}

function pythonSignature(signature: string): string {
  return signature
    .replace(/^def /, '')
    .replace(/\n *self,(?=\n)/, '')
    .replace(/(\(\s*)self(?:, )?/, '$1')
    .replaceAll(' = UNSET', ' = …')
}

const TS_MEMBER = /^ {2}(?:async )?(?:get )?\*?([a-z]\w*)(?:<[^(]*>)?\(/
const PYTHON_MEMBER = /^ {4}def ([a-z]\w*)\(/
/** Members that no caller writes by name. */
const IMPLICIT = new Set(['constructor', 'then'])

interface Declaration {
  readonly name: string
  readonly signature: string
}

function membersOf(source: string, begin: RegExp, member: RegExp, end: string): Declaration[] {
  const lines = source.split('\n')
  const from = lines.findIndex((line) => begin.test(line))
  if (from < 0) throw new Error(`No class matches ${begin} in the client's source.`)
  const length = lines.slice(from + 1).findIndex((line) => /^[^\s)]/.test(line))
  const body = length < 0 ? lines.slice(from + 1) : lines.slice(from + 1, from + 1 + length)
  return declarations(body.join('\n'), member, end).filter(({ name }) => !IMPLICIT.has(name))
}

/** Declarations that match, each from its first line to the line that ends with `end`. */
function declarations(source: string, pattern: RegExp, end: string): Declaration[] {
  const lines = source.split('\n')
  return lines.flatMap((line, i) => {
    const name = pattern.exec(line)?.[1]
    if (name === undefined) return []
    const last = lines.findIndex((each, at) => at >= i && each.endsWith(end))
    return [{ name, signature: signatureOf(lines.slice(i, last + 1), end) }]
  })
}

/** On one line if it is short, else with a parameter on each line, as in the source. */
function signatureOf(lines: readonly string[], end: string): string {
  const indent = /^ */.exec(lines[0]!)![0].length
  const text = lines
    .map((line) => line.slice(indent))
    .join('\n')
    .slice(0, -end.length)
  const joined = text.replaceAll(/\n\s*/g, ' ').replaceAll('( ', '(').replaceAll(/,? \)/g, ')')
  return joined.length <= 100 ? joined : text
}

function camel(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}
