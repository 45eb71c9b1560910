/**
 * Parses SKILL.md: the front matter, validated field by field, and the instructions after it. All problems are reported
 * together. A skill with an error is rejected; one with warnings is not. What other agents accept (a colon in an unquoted
 * text, `allowed-tools` as a list, a long description) is accepted here too, with a warning.
 *
 * All values are strings, as the convention defines: `version: 1.0` stays `1.0`. Front matter is data, without tags or code.
 */
import { isUtf8 } from 'node:buffer'
import { parseDocument } from 'yaml'
import type { SkillMeta } from '../domain/skill.ts'

export interface Problem {
  readonly severity: 'error' | 'warning'
  /** A sentence that names the file and the field. */
  readonly message: string
}

export interface SkillText {
  readonly name: string
  readonly meta: SkillMeta
  /** The text after the front matter. */
  readonly instructions: string
}

export interface ReadSkill {
  /** Undefined if any problem is an error. */
  readonly skill: SkillText | undefined
  readonly problems: readonly Problem[]
}

export const SKILL_FILE = 'SKILL.md'
/** Maximum size of SKILL.md, in bytes. The model gets all of it; larger material belongs in references. */
export const MAX_SKILL_FILE_BYTES = 1024 * 1024

const MAX_FRONT_MATTER_CHARS = 65_536
const MAX_ALIASES = 10
const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
/** Maximum length that is accepted, with a warning. Every prompt of a run with the skill contains the description. */
const LONGEST_DESCRIPTION = 4096
const MAX_COMPATIBILITY = 500
const MAX_LICENSE = 1024
const MAX_METADATA = 64
const MAX_METADATA_CHARS = 1024
const MAX_ALLOWED_TOOLS = 200
const FIELDS = new Set(['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'])

/** `file`: path for messages. `folder`: name of the folder that contains it, if it has one. */
export function readSkillFile(bytes: Uint8Array, file: string, folder?: string): ReadSkill {
  const problems: Problem[] = []
  const notes: Notes = {
    error: (message) => problems.push({ severity: 'error', message: `${file}: ${message}` }),
    warn: (message) => problems.push({ severity: 'warning', message: `${file}: ${message}` }),
  }
  const split = splitFile(bytes, notes)
  const fields = split && parseFields(split.frontMatter, notes)
  if (!fields) return { skill: undefined, problems }
  const name = readName(fields.name, folder, notes)
  const meta: SkillMeta = {
    description: readDescription(fields.description, notes),
    license: readText('license', fields.license, MAX_LICENSE, notes),
    compatibility: readText('compatibility', fields.compatibility, MAX_COMPATIBILITY, notes),
    metadata: readMetadata(fields.metadata, notes),
    allowedTools: readAllowedTools(fields['allowed-tools'], notes),
  }
  for (const field of Object.keys(fields)) {
    if (!FIELDS.has(field)) notes.warn(`\`${clip(field)}\` is not a field of the convention; it was ignored.`)
  }
  const failed = problems.some(({ severity }) => severity === 'error')
  return { skill: failed ? undefined : { name, meta, instructions: split.instructions }, problems }
}

interface Notes {
  error(message: string): void
  warn(message: string): void
}

function splitFile(bytes: Uint8Array, notes: Notes): { frontMatter: string; instructions: string } | undefined {
  if (bytes.length > MAX_SKILL_FILE_BYTES) {
    notes.error(
      `has ${bytes.length} bytes; at most ${MAX_SKILL_FILE_BYTES} are allowed. Move details into references/.`,
    )
    return undefined
  }
  if (!isUtf8(bytes)) {
    notes.error('is not UTF-8. Save it as UTF-8.')
    return undefined
  }
  const text = new TextDecoder().decode(bytes).replaceAll('\r\n', '\n') // drops a byte order mark
  if (!/^---[ \t]*\n/.test(text)) {
    notes.error('does not begin with front matter: the first line must be ---, then `name` and `description`.')
    return undefined
  }
  const end = /\n---[ \t]*(?:\n|$)/.exec(text)
  if (!end) {
    notes.error('has front matter without an end: a line --- must follow the last field.')
    return undefined
  }
  const frontMatter = text.slice(text.indexOf('\n') + 1, end.index + 1)
  if (frontMatter.length > MAX_FRONT_MATTER_CHARS) {
    notes.error(`has front matter of ${frontMatter.length} characters; at most ${MAX_FRONT_MATTER_CHARS} are allowed.`)
    return undefined
  }
  return { frontMatter, instructions: text.slice(end.index + end[0].length).trim() }
}

function parseFields(frontMatter: string, notes: Notes): Readonly<Record<string, unknown>> | undefined {
  let parsed = parseYaml(frontMatter)
  if ('problem' in parsed) {
    const { problem } = parsed
    parsed = parseYaml(quoteTexts(frontMatter))
    if ('problem' in parsed) {
      notes.error(`the front matter is not valid YAML: ${problem}`)
      return undefined
    }
    notes.warn(`the front matter is not valid YAML (${problem}) It was read as if its texts were quoted. Quote them.`)
  }
  const { value } = parsed
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  notes.error('the front matter must be a map, with `name: …` and `description: …` on one line each.')
  return undefined
}

function parseYaml(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    const document = parseDocument(text, { schema: 'failsafe', prettyErrors: false, logLevel: 'silent' })
    const [error] = document.errors
    if (error) {
      const line = text.slice(0, error.pos[0]).split('\n').length + 1 // line number in the file
      return { problem: `line ${line}: ${error.message.split('\n')[0]!.replace(/\.?$/, '.')}` }
    }
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }) }
  } catch (error) {
    // Too many aliases, or too deeply nested.
    return { problem: `${(error as Error).message.split('\n')[0]}.` }
  }
}

/** Quotes unquoted texts such as `description: Use it when: …`, which other agents' parsers accept. */
function quoteTexts(frontMatter: string): string {
  return frontMatter.replaceAll(
    /^(name|description|license|compatibility|allowed-tools):[ \t]+([^\s"'|>[{#&*!][^\n]*)$/gm,
    (_line, field: string, text: string) => `${field}: ${JSON.stringify(text.trim())}`,
  )
}

function readName(value: unknown, folder: string | undefined, notes: Notes): string {
  const rule = `must be 1 to ${MAX_NAME} lower-case letters, digits and hyphens, no hyphen first, last or twice in a row`
  if (value === undefined || value === '') notes.error(`\`name\` is missing; it ${rule}.`)
  else if (typeof value !== 'string' || value.length > MAX_NAME || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(value)) {
    notes.error(`\`name\` is ${show(value)}; it ${rule}.`)
  } else if (folder !== undefined && folder !== value) {
    notes.warn(`\`name\` is ${show(value)}, but the folder is ${show(folder)}; the convention wants them the same.`)
  }
  return String(value)
}

function readDescription(value: unknown, notes: Notes): string {
  const description = typeof value === 'string' ? value.trim() : ''
  if (value !== undefined && typeof value !== 'string') notes.error('`description` must be a text.')
  else if (description === '') {
    notes.error(
      '`description` is missing; it must say, in 1 to 1,024 characters, what the skill does and when to use it.',
    )
  } else if (description.length > LONGEST_DESCRIPTION) {
    notes.error(`\`description\` has ${description.length} characters; the convention allows ${MAX_DESCRIPTION}.`)
  } else if (description.length > MAX_DESCRIPTION) {
    notes.warn(`\`description\` has ${description.length} characters; the convention allows ${MAX_DESCRIPTION}.`)
  }
  return description
}

function readText(field: string, value: unknown, maxChars: number, notes: Notes): string | undefined {
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string') notes.error(`\`${field}\` must be a text.`)
  else if (value.length > maxChars) {
    notes.error(`\`${field}\` has ${value.length} characters; at most ${maxChars} are allowed.`)
  } else return value.trim()
  return undefined
}

function readMetadata(value: unknown, notes: Notes): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    notes.error('`metadata` must be a map from names to texts.')
    return undefined
  }
  const entries = Object.entries(value)
  if (entries.length > MAX_METADATA) {
    notes.error(`\`metadata\` has ${entries.length} entries; at most ${MAX_METADATA} are allowed.`)
    return undefined
  }
  const texts = entries.map(([key, entry]) => {
    if (typeof entry !== 'string') notes.warn(`\`metadata.${clip(key)}\` is not a string; it was kept as JSON.`)
    const text = typeof entry === 'string' ? entry : JSON.stringify(entry)
    if (text.length > MAX_METADATA_CHARS || key.length > MAX_METADATA_CHARS) {
      notes.error(`\`metadata.${clip(key)}\` is longer than ${MAX_METADATA_CHARS} characters.`)
    }
    return [key, text] as const
  })
  return Object.fromEntries(texts)
}

function readAllowedTools(value: unknown, notes: Notes): string[] {
  if (value === undefined || value === '') return []
  const isList = Array.isArray(value) && value.every((entry) => typeof entry === 'string')
  if (typeof value !== 'string' && !isList) {
    notes.error('`allowed-tools` must be a text with spaces between the tools, or a list of texts.')
    return []
  }
  if (isList) notes.warn('`allowed-tools` is a list; the convention wants one text, with spaces between the tools.')
  const tools = [value].flat().flatMap((text) => splitTools(text as string))
  if (tools.length > MAX_ALLOWED_TOOLS) {
    notes.error(`\`allowed-tools\` names ${tools.length} tools; at most ${MAX_ALLOWED_TOOLS} are allowed.`)
  }
  return [...new Set(tools)]
}

/** Splits at spaces and commas outside parentheses: `Bash(git add:*), Read`. */
function splitTools(text: string): string[] {
  return text.match(/(?:\([^()]*\)?|[^\s,()]|\))+/g) ?? []
}

function show(value: unknown): string {
  return clip(typeof value === 'string' ? JSON.stringify(value) : Array.isArray(value) ? 'a list' : 'a map')
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
