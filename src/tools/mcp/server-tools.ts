/**
 * Converts a server's tools to tools of the run: filtered, renamed and bounded. If the server has resources or prompts, adds
 * tools that list and read them.
 */
import { createHash } from 'node:crypto'
import type { Progress, Tool as ServerTool } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { JsonSchema } from '../../domain/interaction.ts'
import { isShallow } from '../../domain/shallow.ts'
import { toolArguments } from '../arguments.ts'
import type { Tool, ToolContext, ToolOutcome } from '../port.ts'
import { truncateEnd } from '../truncate.ts'
import type { CallLimits, Connection } from './connection.ts'
import { explainFailure } from './failures.ts'
import { headersAreUsable } from './parameter-headers.ts'
import { fromPrompt, fromResource, toOutcome } from './result.ts'
import type { Names } from './tool-names.ts'

const MAX_DESCRIPTION_BYTES = 4_096
const MAX_SCHEMA_BYTES = 32 * 1024
const MAX_SCHEMA_DEPTH = 40
/** Maximum number and size of a server's tools. A model gets them one by one if there are many. */
const MAX_TOOLS = 1_000
const MAX_DEFINITIONS_BYTES = 1024 * 1024
/** The readers' names without the server's prefix. */
const READERS = ['list_resources', 'read_resource', 'list_prompts', 'get_prompt']
const MAX_NAMED = 10
/** Maximum progress output of one call. */
const MAX_PROGRESS_BYTES = 16 * 1024

export interface ServerRules {
  readonly name: string
  /** Gets the server's own name of the tool. */
  readonly allowed: (tool: string) => boolean
  readonly needsApproval: (tool: string) => boolean
  /** The names in `allowedTools` and `requireApproval` that are not among these tools. */
  readonly unmatched: (tools: readonly string[]) => readonly string[]
}

export interface Shown {
  readonly tools: readonly Tool[]
  /** Tools that were left out or changed, a sentence each. */
  readonly problems: readonly string[]
}

/** Number and bytes of tools that the servers of a run may still offer, together. */
export interface Room {
  tools: number
  bytes: number
}

export function createRoom(): Room {
  return { tools: 2 * MAX_TOOLS, bytes: 2 * MAX_DEFINITIONS_BYTES }
}

/** Converts the current list of tools. Pure except for `names`, which assigns names, and `room`. */
export function showTools(connection: Connection, rules: ServerRules, names: Names, room: Room): Shown {
  const problems: string[] = []
  const tools: Tool[] = []
  const limits = { tools: Math.min(MAX_TOOLS, room.tools), bytes: Math.min(MAX_DEFINITIONS_BYTES, room.bytes) }
  let bytes = 0
  let left = 0
  for (const tool of connection.tools()) {
    if (!rules.allowed(tool.name)) continue
    if (connection.isModern && !headersAreUsable(tool.inputSchema)) {
      problems.push(`Its tool ${show(tool.name)} is left out: its x-mcp-header declarations are invalid.`)
      continue
    }
    const parameters = schemaOf(tool, problems)
    const description = truncateEnd(tool.description ?? tool.title ?? tool.name, MAX_DESCRIPTION_BYTES)
    const size = Buffer.byteLength(description) + Buffer.byteLength(JSON.stringify(parameters))
    if (tools.length === limits.tools || bytes + size > limits.bytes) {
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
      `${how} are left out: the limit is ${MAX_TOOLS} tools a server, and twice that a run. Name the ones you need in allowedTools.`,
    )
  }
  room.tools -= tools.length
  room.bytes -= bytes
  const unmatched = rules.unmatched([...connection.tools().map((tool) => tool.name), ...READERS])
  if (unmatched.length > 0) {
    const named = unmatched.slice(0, MAX_NAMED).map(show).join(', ')
    problems.push(`It has no tool ${named}, which allowedTools or requireApproval names.`)
  }
  return { tools: [...tools, ...readers(connection, rules, names)], problems }
}

/** Replaces a schema that is too large or too deep by one that accepts any object. */
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
    external: true,
    repeatable: readOnlyHint === true || idempotentHint === true,
    lane: () => (readOnlyHint === true ? 'shared' : 'alone'),
    needsApproval: rules.needsApproval(tool.name),
    mcp: { server: rules.name, tool: tool.name, title: tool.title ?? tool.annotations?.title },
    run: (args, context) =>
      sendRequest(connection, context, async (limits) => {
        const result = await connection.call(tool, args, limits)
        return toOutcome(result, context)
      }),
  }
}

/** Tools that list and read the server's resources and prompts. */
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
        external: true,
        repeatable: true,
        needsApproval: rules.needsApproval(name),
        mcp: { server: rules.name, tool: name },
        async run(sent, context) {
          const checked = args.check(sent)
          if (!checked.ok) return { output: checked.message }
          return sendRequest(connection, context, (limits) => read(checked.value, limits, context))
        },
      },
    ]
  }
  const cursor = z.object({
    cursor: z
      .string()
      .optional()
      .meta({ description: 'The nextCursor of the previous page. Default: the first page.' }),
  })
  const { name } = rules
  return [
    ...(connection.hasResources
      ? [
          ...reader('list_resources', `Lists the resources of ${name}.`, cursor, async (args, limits) => {
            const page = await connection.resources(args.cursor, limits)
            const templates =
              args.cursor === undefined ? await connection.resourceTemplates(limits).catch(() => undefined) : undefined
            return listed({ ...page, templates: templates?.resourceTemplates })
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
          ...reader('list_prompts', `Lists the prompts of ${name}.`, cursor, async (args, limits) =>
            listed(await connection.prompts(args.cursor, limits)),
          ),
          ...reader(
            'get_prompt',
            `Returns a prompt of ${name} with its arguments filled in.`,
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

function listed(page: object): ToolOutcome {
  const { _meta, ...rest } = page as Record<string, unknown>
  return { output: JSON.stringify(rest, null, 1) }
}

/** Sends a request and turns failures into outcomes. */
async function sendRequest(
  connection: Connection,
  context: ToolContext,
  request: (limits: CallLimits) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const timeoutMs = Math.max(1, context.remainingMs())
  try {
    const outcome = await request({ signal: context.signal, timeoutMs, onProgress: progressReporter(context.onOutput) })
    // Tool changes that the server announced with its answer are visible in the next turn.
    await connection.settled()
    return outcome
  } catch (error) {
    const { sentence, unknown } = explainFailure(error, timeoutMs)
    return { output: unknown ? `${sentence} Whether the call had an effect is not known.` : sentence, failed: true }
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
