/** Resolves calls of `call_tool` to the tool that they name, and explains the calls that can't run. */
import type { ToolCallPart } from '../../domain/message.ts'
import { isShallow } from '../../domain/shallow.ts'
import { isJsonObject, type JsonObject } from '../../models/json.ts'
import { CALL_TOOL, type ToolSearch } from '../../tools/find-tools.ts'
import type { Tool } from '../../tools/port.ts'
import { schemaOf } from './argument-errors.ts'
import type { Toolbox } from './toolbox.ts'

/** Maximum nesting of arguments that were sent as text. */
const MAX_DEPTH = 100
const MAX_NEAREST = 5

/** Without `search`, the model gets every tool's definition, and there is no `call_tool`. */
export function createCallResolver(
  tools: () => ReadonlyMap<string, Tool>,
  search?: ToolSearch,
): Pick<Toolbox, 'resolve' | 'explain'> {
  return {
    resolve(call) {
      if (call.name !== CALL_TOOL.name || !call.args) return call
      const { name, args } = call.args
      if (typeof name !== 'string' || !tools().has(name)) return call
      return { ...call, name, args: argumentsIn(args) }
    },
    async explain(call) {
      const tool = tools().get(call.name)
      if (tool)
        return `The arguments of ${call.name} are not a JSON object, or are nested too deep. Call it again with valid arguments.${search ? schemaOf(tool) : ''}`
      return search ? explainMissing(call, search) : unknownTool(call.name, tools())
    },
  }
}

function argumentsIn(value: unknown): JsonObject | undefined {
  if (value === undefined || value === null) return {}
  if (isJsonObject(value)) return value
  if (typeof value !== 'string') return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return isJsonObject(parsed) && isShallow(parsed, MAX_DEPTH) ? parsed : undefined
  } catch {
    return undefined
  }
}

async function explainMissing({ name, args }: ToolCallPart, search: ToolSearch): Promise<string> {
  const viaCall = name === CALL_TOOL.name
  const asked = viaCall ? args?.name : name
  if (typeof asked !== 'string' || asked === '')
    return 'call_tool did nothing: `name` must be the name of a tool, and `args` an object with its arguments. Find tools with find_tools.'
  const nearest = (await search.find(asked)).slice(0, MAX_NEAREST).map(({ definition }) => definition.name)
  const hint = nearest.length > 0 ? `The nearest are: ${nearest.join(', ')}.` : ''
  return [`There is no tool ${quote(asked)}.`, hint, 'Find tools with find_tools.'].filter(Boolean).join(' ')
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): string {
  const names = [...tools.keys()]
  const known = names.length > 0 ? `The tools are: ${names.join(', ')}.` : 'No tools are enabled.'
  return `There is no tool ${quote(name)}. ${known}`
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}
