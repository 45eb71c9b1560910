/** Adds the JSON Schema of a tool's arguments to an error about them: the model may not have looked the tool up. */
import type { JsonSchema } from '../../domain/interaction.ts'
import { isJsonObject } from '../../models/json.ts'
import type { Tool, ToolOutcome } from '../../tools/port.ts'

/** JSON-RPC's code for invalid parameters. Servers also quote it in the text of a result. */
const INVALID_PARAMETERS = '-32602'

export function withSchemaInErrors(tool: Tool): Tool {
  if (!tool.mcp) return tool
  return {
    ...tool,
    async run(args, context) {
      const outcome = await tool.run(args, context)
      return isAboutArguments(outcome, args, tool.definition.parameters)
        ? { ...outcome, output: outcome.output + schemaOf(tool) }
        : outcome
    },
  }
}

export function schemaOf({ definition }: Tool): string {
  return `\nThe JSON Schema of its arguments: ${JSON.stringify(definition.parameters)}`
}

type Fields = Readonly<Record<string, unknown>>

function isAboutArguments({ failed, output }: ToolOutcome, args: Fields, schema: JsonSchema): boolean {
  return failed === true && (output.includes(INVALID_PARAMETERS) || !hasTheParameters(args, schema))
}

/** Whether all required parameters are there, and no unknown ones if the schema excludes them. */
function hasTheParameters(args: Fields, { required, properties, additionalProperties }: JsonSchema): boolean {
  const has = (name: unknown) => typeof name !== 'string' || Object.hasOwn(args, name)
  if (Array.isArray(required) && !required.every(has)) return false
  if (!isJsonObject(properties)) return true
  return additionalProperties !== false || Object.keys(args).every((name) => Object.hasOwn(properties, name))
}
