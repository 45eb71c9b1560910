/**
 * Reads values from the file and the environment by the table of settings. Pure. Collects every problem: an unknown name with
 * the nearest known one, and a value that its setting does not allow.
 *
 * Zod checks the values and `yaml` parses the file. We considered a configuration library for the rest and decided against
 * it. c12 (15 packages) merges files and defaults, but maps no environment variables to settings and throws at the first
 * error. convict maps them, but does not report unknown variables and has a second schema language beside Zod's. Neither
 * remembers whether a value came from the file or the environment, which decides what a relative path is relative to. What
 * they would replace is about 60 of the lines below.
 */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { LineCounter, parseDocument } from 'yaml'
import type { Setting } from './setting.ts'
import { OTHER_VARIABLES, SETTINGS } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Valid values by path. Relative paths are resolved. */
export type Values = ReadonlyMap<string, unknown>

export interface ConfigFile {
  readonly path: string
  readonly text: string
}

export interface Sources {
  readonly env: Environment
  readonly file: ConfigFile | undefined
  /** Base of relative paths in the environment. */
  readonly cwd: string
  /** Base of the defaults' relative paths. */
  readonly home: string
}

export function readValues(sources: Sources, problems: string[]): Values {
  const tree = sources.file ? parseFile(sources.file, problems) : {}
  const inFile = new Map<string, unknown>()
  flatten(tree, '', inFile, problems)
  const values = new Map<string, unknown>()
  for (const setting of SETTINGS) {
    const found = find(setting, sources, inFile, problems)
    if (found === undefined) continue
    const value = check(setting, found, problems)
    if (value !== undefined) {
      values.set(setting.path, setting.isPath ? placed(setting, found.base, value as string) : value)
    }
  }
  const named = [...values].flatMap(([path, value]) => (path.endsWith('Env') ? [value] : []))
  unknownVariables(sources.env, values.get('models') as Models | undefined, named, problems)
  return values
}

function placed(setting: Setting, base: string, value: string): string {
  const path = resolve(base, value)
  return setting.orElse?.test(value) && !existsSync(path) ? value : path
}

interface Found {
  /** Name for messages: the path, or the variable. */
  readonly name: string
  readonly value: unknown
  readonly base: string
}

function find(setting: Setting, sources: Sources, inFile: Values, problems: string[]): Found | undefined {
  const text = sources.env[setting.env]
  // An empty variable counts as unset, as in most shell scripts.
  if (text !== undefined && text !== '') {
    try {
      return { name: setting.env, value: setting.fromText(text), base: sources.cwd }
    } catch (error) {
      problems.push(`${setting.env} can't be read: ${firstLine(error)}`)
      return undefined
    }
  }
  const value = inFile.get(setting.path)
  if (value !== undefined && value !== null) {
    return { name: setting.path, value, base: sources.file ? dirname(sources.file.path) : sources.home }
  }
  if (setting.fallback === undefined) return undefined
  return { name: setting.path, value: setting.fallback, base: sources.home }
}

function check(setting: Setting, found: Found, problems: string[]): unknown {
  const result = setting.schema.safeParse(found.value)
  if (result.success) return result.data
  const inside = result.error.issues.filter((issue) => issue.path.length > 0)
  if (inside.length === 0 || Array.isArray(found.value)) {
    problems.push(`${found.name} is ${setting.secret ? 'not valid' : shown(found.value)}; it must be ${setting.must}.`)
    return undefined
  }
  for (const issue of inside) {
    const at = [found.name, ...issue.path].join('.')
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) {
        problems.push(`${at} has no setting ${JSON.stringify(key)}.${didYouMean(key, MODEL_KEYS)}`)
      }
    } else problems.push(`${at} ${issue.code === 'invalid_key' ? issue.issues[0]?.message : issue.message}.`)
  }
  return undefined
}

const MODEL_KEYS = [
  'provider',
  'model',
  'baseUrl',
  'apiKeyEnv',
  'price',
  'input',
  'output',
  'cachedInput',
  'cacheWrite',
  'vision',
  'documents',
  'maxTries',
  'fallbacks',
  'idleTimeoutS',
  'sendReasoning',
  'cache',
]

function parseFile(file: ConfigFile, problems: string[]): unknown {
  const lines = new LineCounter()
  const document = parseDocument(file.text, { lineCounter: lines, prettyErrors: false })
  for (const error of document.errors) {
    problems.push(`${file.path}, line ${lines.linePos(error.pos[0]).line}: ${firstLine(error)}`)
  }
  if (document.errors.length > 0) return {}
  try {
    const tree: unknown = document.toJS() ?? {}
    if (isMap(tree)) return tree
    problems.push(`${file.path} is ${shown(tree)}; it must be a map of settings.`)
  } catch (error) {
    // The parser reports an alias without an anchor only here.
    problems.push(`${file.path} can't be read: ${firstLine(error)}`)
  }
  return {}
}

const PATHS = new Set(SETTINGS.map((setting) => setting.path))
const SECTIONS = new Set(
  SETTINGS.flatMap(({ path }) => {
    const parts = path.split('.')
    return parts.slice(1).map((_part, i) => parts.slice(0, i + 1).join('.'))
  }),
)

function flatten(tree: unknown, prefix: string, into: Map<string, unknown>, problems: string[]): void {
  for (const [key, value] of Object.entries(tree as Record<string, unknown>)) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (PATHS.has(path)) into.set(path, value)
    else if (!SECTIONS.has(path))
      problems.push(`There is no setting ${JSON.stringify(path)}.${didYouMean(path, [...PATHS, ...SECTIONS])}`)
    else if (isMap(value)) flatten(value, path, into, problems)
    else if (value !== null) problems.push(`${path} is ${shown(value)}; it must be a map of settings.`)
  }
}

type Models = Readonly<Record<string, { readonly apiKeyEnv?: string }>>

/** Reports unknown variables: a typo would silently turn a limit off. */
function unknownVariables(
  env: Environment,
  models: Models | undefined,
  named: readonly unknown[],
  problems: string[],
): void {
  const known = new Set([...SETTINGS.map((setting) => setting.env), ...Object.keys(OTHER_VARIABLES)])
  const keys = new Set([...Object.values(models ?? {}).map((model) => model.apiKeyEnv), ...named])
  for (const name of Object.keys(env)) {
    if (!name.startsWith('ERRAND_') || known.has(name) || keys.has(name)) continue
    problems.push(`There is no setting ${name}.${didYouMean(name, [...known])}`)
  }
}

function didYouMean(name: string, candidates: readonly string[]): string {
  let best: string | undefined
  // At most about one typo in three letters; a worse match gives no suggestion.
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best === undefined ? '' : ` Did you mean ${best}?`
}

/** Insertions, deletions and replacements that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_unused, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shown(value: unknown): string {
  if (typeof value === 'number') return String(value)
  const json = JSON.stringify(value) ?? String(value)
  return json.length > 80 ? `${json.slice(0, 80)}…` : json
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]!
}
