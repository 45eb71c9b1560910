/**
 * A server's tools as tools of the run: filtered, named, bounded, each call with its time and its answer in words. Where
 * the server has resources or prompts, tools to list and read them come with it.
 */
import { createHash } from 'node:crypto'
import type { Progress, Tool as ServerTool } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { JsonSchema } from '../../domain/interaction.ts'
import { isShallow } from '../../domain/shallow.ts'
import { toolArguments } from '../arguments.ts'
import type { Tool, ToolContext, ToolOutcome } from '../port.ts'
import { truncateEnd, truncateMiddle } from '../truncate.ts'
import type { CallLimits, Connection } from './connection.ts'
import { explainFailure } from './failures.ts'
import { headersAreUsable } from './parameter-headers.ts'
import { fromPrompt, fromResource, toOutcome } from './result.ts'
import type { Names } from './tool-names.ts'

const MAX_DESCRIPTION_BYTES = 4_096
const MAX_SCHEMA_BYTES = 32 * 1024
const MAX_SCHEMA_DEPTH = 40
/** Of all definitions of one server: they stand before the model at each call. */
const MAX_DEFINITIONS_BYTES = 256 * 1024
/** What providers take in one call. */
const MAX_TOOLS = 128
/** What readers are called before their names are given. */
const READERS = ['list_resources', 'read_resource', 'list_prompts', 'get_prompt']
const MAX_NAMED = 10
/** Of one call's progress. */
const MAX_PROGRESS_BYTES = 16 * 1024

export interface ServerRules {
  readonly name: string
  /** By the server's own names. */
  readonly allowed: (tool: string) => boolean
  readonly needsApproval: (tool: string) => boolean
  /** What `allowedTools` and `requireApproval` name that is none of these. */
  readonly unmatched: (tools: readonly string[]) => readonly string[]
}

export interface Shown {
  readonly tools: readonly Tool[]
  /** What was left out or changed, a sentence each. */
  readonly problems: readonly string[]
}

/** The tools as they are now. Pure but for `names`, which remembers what it gave. */
export function showTools(connection: Connection, rules: ServerRules, names: Names): Shown {
  const problems: string[] = []
  const tools: Tool[] = []
  let bytes = 0
  let left = 0
  for (const tool of connection.tools()) {
    if (!rules.allowed(tool.name)) continue
    if (connection.isModern && !headersAreUsable(tool.inputSchema)) {
      problems.push(`Its tool ${show(tool.name)} is left out: it wants parameters in headers that can't be.`)
      continue
    }
    const parameters = schemaOf(tool, problems)
    const description = truncateEnd(tool.description ?? tool.title ?? tool.name, MAX_DESCRIPTION_BYTES)
    const size = Buffer.byteLength(description) + Buffer.byteLength(JSON.stringify(parameters))
    if (tools.length === MAX_TOOLS || bytes + size > MAX_DEFINITIONS_BYTES) {
      left++
      continue
    }
    const given = names.give(rules.name, tool.name)
    if (!given) {
      problems.push(`It lists ${show(tool.name)} twice; the first is used.`)
      continue
    }
    if (!given.exact) problems.push(`Its tool ${show(tool.name)} is called ${given.name} here.`)
    bytes += size
    tools.push(callTool(connection, rules, tool, { name: given.name, description, parameters }))
  }
  if (left > 0 || connection.listTruncated) {
    const how = connection.listTruncated ? 'More tools' : `${left} more tools`
    problems.push(
      `${how} are left out: at most ${MAX_TOOLS} of a server are offered. Name the ones you need in allowedTools.`,
    )
  }
  const unmatched = rules.unmatched([...connection.tools().map((tool) => tool.name), ...READERS])
  if (unmatched.length > 0) {
    const named = unmatched.slice(0, MAX_NAMED).map(show).join(', ')
    problems.push(`It has no tool ${named}, which allowedTools or requireApproval names.`)
  }
  return { tools: [...tools, ...readers(connection, rules, names)], problems }
}

/** Arguments are an object with most providers, of any shape; a schema that is none, or is huge, becomes an open one. */
function schemaOf(tool: ServerTool, problems: string[]): JsonSchema {
  const schema = tool.inputSchema as JsonSchema
  if (isShallow(schema, MAX_SCHEMA_DEPTH) && Buffer.byteLength(JSON.stringify(schema)) <= MAX_SCHEMA_BYTES)
    return schema
  problems.push(`The arguments of its tool ${show(tool.name)} are not described: their schema is too large.`)
  return { type: 'object' }
}

function callTool(connection: Connection, rules: ServerRules, tool: ServerTool, definition: Tool['definition']): Tool {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {}
  return {
    definition,
    keyed: false,
    repeatable: readOnlyHint === true || idempotentHint === true,
    needsApproval: rules.needsApproval(tool.name),
    run: (args, context) =>
      answering(connection, context, async (limits) => {
        const result = await connection.call(tool, args, limits)
        return toOutcome(result, context)
      }),
  }
}

/** What the server lists besides tools, for a model to look at. */
function readers(connection: Connection, rules: ServerRules, names: Names): Tool[] {
  const reader = <S extends z.ZodObject>(
    name: string,
    description: string,
    schema: S,
    read: (args: z.output<S>, limits: CallLimits, context: ToolContext) => Promise<ToolOutcome>,
  ): Tool[] => {
    if (!rules.allowed(name)) return []
    const given = names.give(rules.name, name) ?? names.give(rules.name, `${name}_${hash(name)}`)
    if (!given) return []
    const args = toolArguments(given.name, schema)
    return [
      {
        definition: { name: given.name, description, parameters: args.parameters },
        keyed: false,
        repeatable: true,
        needsApproval: rules.needsApproval(name),
        async run(sent, context) {
          const checked = args.check(sent)
          if (!checked.ok) return { output: checked.message }
          return answering(connection, context, (limits) => read(checked.value, limits, context))
        },
      },
    ]
  }
  const cursor = z.object({
    cursor: z.string().optional().meta({ description: 'The nextCursor of the answer before, for the next page.' }),
  })
  const { name } = rules
  return [
    ...(connection.hasResources
      ? [
          ...reader('list_resources', `Lists what ${name} has to be read.`, cursor, async (args, limits, context) => {
            const page = await connection.resources(args.cursor, limits)
            const templates =
              args.cursor === undefined ? await connection.resourceTemplates(limits).catch(() => undefined) : undefined
            return listed({ ...page, templates: templates?.resourceTemplates }, context)
          }),
          ...reader(
            'read_resource',
            `Reads a resource of ${name}, by its uri.`,
            z.object({ uri: z.string({ error: 'must be a string' }) }),
            async ({ uri }, limits, context) => fromResource(await connection.readResource(uri, limits), context),
          ),
        ]
      : []),
    ...(connection.hasPrompts
      ? [
          ...reader(
            'list_prompts',
            `Lists the prompts that ${name} has prepared.`,
            cursor,
            async (args, limits, context) => listed(await connection.prompts(args.cursor, limits), context),
          ),
          ...reader(
            'get_prompt',
            `Gets a prompt of ${name}, filled in.`,
            z.object({
              name: z.string({ error: 'must be a string' }),
              arguments: z.record(z.string(), z.string(), { error: 'must be an object of strings' }).optional(),
            }),
            async (args, limits, context) =>
              fromPrompt(await connection.prompt(args.name, args.arguments ?? {}, limits), context),
          ),
        ]
      : []),
  ]
}

function listed(page: object, { outputBytes }: ToolContext): ToolOutcome {
  const { _meta, ...rest } = page as Record<string, unknown>
  return { output: truncateMiddle(JSON.stringify(rest, null, 1), outputBytes).text }
}

/** A failure is an answer too. */
async function answering(
  connection: Connection,
  context: ToolContext,
  ask: (limits: CallLimits) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const timeoutMs = Math.max(1, context.remainingMs())
  try {
    const outcome = await ask({ signal: context.signal, timeoutMs, onProgress: progressReporter(context.onOutput) })
    // A change that the server told with its answer is known to the next turn.
    await connection.settled()
    return outcome
  } catch (error) {
    const { sentence, unknown } = explainFailure(error, timeoutMs)
    return { output: unknown ? `${sentence} Whether the call had an effect is not known.` : sentence }
  }
}

function progressReporter(report: (text: string) => void): (progress: Progress) => void {
  let left = MAX_PROGRESS_BYTES
  return ({ progress, total, message }) => {
    if (left <= 0) return
    const count = total === undefined ? String(progress) : `${progress}/${total}`
    const line = `${truncateEnd(message === undefined ? count : `${count} ${message}`, Math.min(left, 1_024))}\n`
    left -= Buffer.byteLength(line)
    report(line)
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 6)
}

function show(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)
}
