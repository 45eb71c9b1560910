/**
 * The tools `find_tools` and `call_tool`, which replace the declarations of a run's MCP tools if there are too many. The first
 * searches them; a call of the second is a call of the tool that it names.
 */
import { z } from 'zod'
import type { ToolDefinition } from '../models/port.ts'
import { toolArguments } from './arguments.ts'
import type { Tool } from './port.ts'
import { createToolIndex, type ToolIndex } from './tool-index.ts'

const DEFAULT_LIMIT = 8
const MAX_LIMIT = 20
/** Maximum characters of the definitions in one result. The first is always complete. */
const MAX_RESULT = 24_000
const MAX_QUERY = 1_000

const ARGUMENTS = toolArguments(
  'find_tools',
  z.object({
    query: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(MAX_QUERY, `must be at most ${MAX_QUERY} characters`)
      .describe('Words that describe what the tool does, or its name or server.'),
    limit: z
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
      .optional()
      .describe(`Maximum number of tools in the result. Default: ${DEFAULT_LIMIT}, at most ${MAX_LIMIT}.`),
  }),
)

export const CALL_TOOL: ToolDefinition = {
  name: 'call_tool',
  description: 'Calls a tool that find_tools has found.',
  parameters: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name of the tool.' },
      args: { type: 'object', description: 'The arguments of the tool, which match its JSON Schema.' },
    },
    required: ['name', 'args'],
  },
}

/** Counts of tools by server, in the order of the tools. */
export function countByServer(tools: readonly Tool[]): string {
  const counts = new Map<string, number>()
  for (const { mcp } of tools) if (mcp) counts.set(mcp.server, (counts.get(mcp.server) ?? 0) + 1)
  return [...counts].map(([server, count]) => `${server} (${count} ${count === 1 ? 'tool' : 'tools'})`).join(', ')
}

/** A search over the current tools. The index is built on first use, and again when the list has changed. */
export interface ToolSearch {
  find(query: string): Promise<readonly Tool[]>
  /** The tools that are searched. */
  list(): readonly Tool[]
}

export function createToolSearch(list: () => readonly Tool[]): ToolSearch {
  let indexed: readonly Tool[] = []
  let index: Promise<ToolIndex> | undefined
  return {
    list,
    async find(query) {
      const tools = list()
      if (!index || tools.length !== indexed.length || tools.some((tool, i) => tool !== indexed[i])) {
        indexed = tools
        index = createToolIndex(tools)
      }
      return (await index).search(query)
    },
  }
}

export function createFindTools(search: ToolSearch): Tool {
  return {
    definition: {
      name: 'find_tools',
      description:
        'Searches the tools of the MCP servers. Returns the name, the description and the JSON Schema of the arguments of the best matches. Call them with call_tool.',
      parameters: ARGUMENTS.parameters,
    },
    keyed: false,
    repeatable: true,
    lane: () => 'shared',
    async run(args) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const { query, limit = DEFAULT_LIMIT } = checked.value
      return { output: describe(await search.find(query), limit, search.list()) }
    },
  }
}

function describe(found: readonly Tool[], limit: number, all: readonly Tool[]): string {
  if (found.length === 0)
    return `None of the ${all.length} tools matches. Search with other words: what the tool does, or the name of its server. Servers: ${countByServer(all) || 'none'}.`
  const best = found.slice(0, limit)
  const lines: string[] = []
  let room = MAX_RESULT
  for (const { definition } of best) {
    const line = JSON.stringify(definition)
    if (lines.length > 0 && line.length > room) break
    lines.push(line)
    room -= line.length
  }
  const rest = best.slice(lines.length).map(({ definition }) => definition.name)
  const count = `${found.length} of ${all.length} tools match.${found.length > best.length ? ` The best ${best.length}:` : ''}`
  return [
    count,
    ...lines,
    ...(rest.length > 0 ? [`Search for these by name to see them: ${rest.join(', ')}.`] : []),
  ].join('\n')
}
