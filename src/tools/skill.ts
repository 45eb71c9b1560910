/**
 * The `skill` tool: returns the instructions of an enabled skill, or one of its files. Only names and descriptions are in the
 * system prompt; the model loads the rest when it needs it. A skill's `allowed-tools` enables no tools; the result only says
 * which of Errand's tools correspond to them.
 */
import { z } from 'zod'
import type { ToolName } from '../domain/agent.ts'
import { toolsFor } from '../domain/allowed-tools.ts'
import type { RunSpec } from '../domain/interaction.ts'
import type { SkillPin } from '../domain/skill.ts'
import { type SkillCache, type SkillContent, sandboxPath } from '../skills/port.ts'
import { toolArguments } from './arguments.ts'
import { fileKind } from './file-kind.ts'
import { presentImage } from './image.ts'
import { pathArgument } from './path-argument.ts'
import type { Tool, ToolContext, ToolOutcome, ToolProvider } from './port.ts'
import { linesOf } from './text-lines.ts'

/** Maximum number of a skill's files that are listed with its instructions. */
const FILES_NAMED = 100
const FILES_NAMED_BYTES = 8 * 1024
const IN_SANDBOX: readonly ToolName[] = ['code_execution', 'file_read', 'file_write']
const DESCRIPTION =
  'Returns the instructions of a skill, or with `path` one of its files. Call it before a task that a skill covers, and follow its instructions.'

interface Enabled {
  readonly pin: SkillPin
  readonly content: SkillContent
}

export function createSkillTools(cache: SkillCache): ToolProvider {
  return {
    offers: [],
    async open({ spec, warn }) {
      const skills = new Map<string, Enabled>()
      for (const [i, pin] of spec.skills.entries()) {
        const content = await cache.content(pin)
        if (content) skills.set(pin.name, { pin, content })
        else
          warn({ code: 'skill_unavailable', param: `skills[${i}]`, message: `The skill ${pin.name} no longer exists.` })
      }
      if (skills.size === 0) return undefined
      const tool = createSkillTool(skills, spec.tools)
      return { tools: () => [tool], about: about(skills, spec), async close() {} }
    },
  }
}

function hasSandbox(tools: readonly ToolName[]): boolean {
  return tools.some((name) => IN_SANDBOX.includes(name))
}

function about(skills: ReadonlyMap<string, Enabled>, { tools }: RunSpec): string {
  const list = [...skills].map(
    ([name, { content }]) => `- ${name}: ${content.meta.description.replaceAll(/\s+/g, ' ')}`,
  )
  const where = hasSandbox(tools) ? ` Each is also in the sandbox, read-only: ${sandboxPath('NAME')}/.` : ''
  return [
    `Skills are prepared instructions for certain tasks. If a skill covers the task, call \`skill\` with its name before anything else, and follow its instructions.${where}`,
    ...list,
  ].join('\n')
}

const line = z.int('must be a whole number').min(1, 'must be 1 or more')
/** Shared by all runs. Building it for each run, with the names in it, took a tenth of a run's CPU time. */
const ARGUMENTS = toolArguments(
  'skill',
  z.object({
    name: z.string('must be a string').describe('The name of the skill.'),
    path: pathArgument('A file of the skill, relative to its folder. Default: the instructions.').optional(),
    startLine: line.optional().describe('The first line to return, from 1. Default: 1.'),
    endLine: line.optional().describe('The last line to return, inclusive. Default: as many as fit.'),
  }),
)
const { properties: PROPERTIES } = ARGUMENTS.parameters as { properties: Record<string, object> }

function createSkillTool(skills: ReadonlyMap<string, Enabled>, tools: readonly ToolName[]): Tool {
  const names = [...skills.keys()]
  const properties = { ...PROPERTIES, name: { ...PROPERTIES.name, enum: names } }
  return {
    definition: { name: 'skill', description: DESCRIPTION, parameters: { ...ARGUMENTS.parameters, properties } },
    keyed: false,
    lane: () => 'shared',
    repeatable: true,
    async run(given, context) {
      const checked = ARGUMENTS.check(given)
      if (!checked.ok) return { output: checked.message }
      const { name, path = '', startLine = 1, endLine } = checked.value
      const enabled = skills.get(name)
      if (!enabled) return { output: `skill did nothing: \`name\` must be one of ${names.join(', ')}.` }
      const range = { startLine, endLine }
      const wanted = insideSkill(path, name)
      return wanted === '' || wanted === 'SKILL.md'
        ? instruct(enabled, tools, range, context)
        : showFile(enabled, wanted, range, context)
    },
  }
}

interface Range {
  readonly startLine: number
  readonly endLine: number | undefined
}

/** Accepts the forms that models write: `./scripts/x.py`, `/skills/pdf/scripts/x.py`. */
function insideSkill(path: string, name: string): string {
  return path.replace(`${sandboxPath(name)}/`, '').replace(/^(\.?\/)+/, '')
}

async function instruct(
  { pin, content }: Enabled,
  tools: readonly ToolName[],
  range: Range,
  { outputBytes }: ToolContext,
): Promise<ToolOutcome> {
  const text = await content.instructions()
  const head = `Skill ${pin.name}, version ${pin.version}. ${locationOf(pin, tools)}`
  const notes = [head, needs(content, tools), fileList(content)].filter((note) => note !== '').join('\n')
  const room = Math.max(1024, outputBytes - Buffer.byteLength(notes))
  const lines = await linesOf('SKILL.md', Buffer.byteLength(text), { text, encoding: 'utf-8' }, range, {
    maxBytes: room,
  })
  return { output: `${notes}\n${lines}` }
}

function locationOf({ name }: SkillPin, tools: readonly ToolName[]): string {
  if (!hasSandbox(tools)) return 'No sandbox is enabled: its files can be read by `skill` with `path`, but not run.'
  return `Its folder is ${sandboxPath(name)} in the sandbox: the paths below are relative to it. It is read-only; write to /workspace.`
}

/** The skill's compatibility note, and the names of its allowed tools in Errand. */
function needs({ meta }: SkillContent, tools: readonly ToolName[]): string {
  const notes = meta.compatibility === undefined ? [] : [`Compatibility: ${meta.compatibility}`]
  const ours = meta.allowedTools.flatMap((entry) => {
    const tool = toolsFor(entry)?.find((name) => tools.includes(name))
    return tool === undefined || tool === entry ? [] : [`${entry} is ${tool}`]
  })
  if (ours.length > 0) notes.push(`Some tools that it names have other names here: ${ours.join(', ')}.`)
  return notes.join('\n')
}

function fileList({ files }: SkillContent): string {
  const others = files.filter(({ path }) => path.toLowerCase() !== 'skill.md')
  if (others.length === 0) return ''
  const named = withinBytes(others.slice(0, FILES_NAMED).map(({ path, size }) => `- ${path} (${size} bytes)`))
  const more = others.length > named.length ? [`- and ${others.length - named.length} more`] : []
  return ['Its files:', ...named, ...more].join('\n')
}

/** The lines that fit into the limit. */
function withinBytes(lines: readonly string[]): string[] {
  let left = FILES_NAMED_BYTES
  return lines.filter((line) => {
    left -= Buffer.byteLength(line)
    return left >= 0
  })
}

async function showFile(
  { pin, content }: Enabled,
  path: string,
  range: Range,
  context: ToolContext,
): Promise<ToolOutcome> {
  const bytes = await content.read(path)
  if (bytes) return present(`${sandboxPath(pin.name)}/${path}`, bytes, range, context)
  return {
    output: `The skill ${pin.name} has no file \`${path.slice(0, 200)}\`. ${fileList(content) || 'It has no other files.'}`,
  }
}

async function present(place: string, bytes: Uint8Array, range: Range, context: ToolContext): Promise<ToolOutcome> {
  const kind = fileKind(bytes)
  if (kind.kind === 'text')
    return { output: await linesOf(place, bytes.length, kind, range, { maxBytes: context.outputBytes }) }
  if (kind.kind === 'image') return presentImage(place, bytes, kind.mimeType, context)
  const what = kind.kind === 'pdf' ? 'a PDF' : `a binary file (${kind.name})`
  return {
    output: `\`${place}\` is ${what} of ${bytes.length} bytes and was not shown. If a sandbox is enabled, use it there.`,
  }
}
