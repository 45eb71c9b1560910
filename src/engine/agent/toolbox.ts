/** A run's tools from all providers. If two tools have the same name, the first provider's wins. */
import type { ToolCallPart } from '../../domain/message.ts'
import type { ToolDefinition } from '../../models/port.ts'
import { CALL_TOOL, createFindTools, createToolSearch } from '../../tools/find-tools.ts'
import type { RunScope, Tool, ToolProvider, ToolSource } from '../../tools/port.ts'
import type { Redactor } from '../run/redactor.ts'
import { withSchemaInErrors } from './argument-errors.ts'
import { createCallResolver } from './call-resolver.ts'
import { aboutSearch, searchIsNeeded } from './many-tools.ts'

export interface Toolbox {
  /** The current tools by name, with those that the model must search for. */
  tools(): ReadonlyMap<string, Tool>
  /** The definitions that the model gets. If there are too many tools, `find_tools` and `call_tool` replace those of MCP servers. */
  definitions(): readonly ToolDefinition[]
  /** A call of `call_tool` as a call of the tool that it names; any other call as it is. */
  resolve(call: ToolCallPart): ToolCallPart
  /** Explains to the model why a resolved call can't run: there is no such tool, or its arguments are no object. */
  explain(call: ToolCallPart): Promise<string>
  /** Introductions of the tools for the system prompt. */
  readonly about: readonly string[]
  close(): Promise<void>
}

export interface ToolboxOptions {
  /** The context window of the model, in tokens, if it is known. */
  readonly window: number | undefined
  /** Whether the run searches its tools, if an earlier worker has decided. */
  readonly searched: boolean | undefined
}

/** If a provider fails, closes the others' tools and rejects with the first error. */
export async function openToolbox(
  providers: readonly ToolProvider[],
  run: RunScope,
  redactor: Redactor,
  { window, searched }: ToolboxOptions,
): Promise<Toolbox> {
  const opened = await Promise.allSettled(providers.map((provider) => provider.open(run)))
  const sources = opened.flatMap((outcome) => (outcome.status === 'fulfilled' && outcome.value ? [outcome.value] : []))
  const failed = opened.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    await closeAll(sources)
    throw failed.reason
  }
  const listed = (): Tool[] => {
    const tools = new Map<string, Tool>()
    for (const tool of sources.flatMap((source) => source.tools())) {
      const { definition } = tool
      // Descriptions are external too. A tool whose description contains a secret of the run is left out.
      if (!tools.has(definition.name) && redactor.isClean(definition)) tools.set(definition.name, tool)
    }
    return [...tools.values()]
  }
  const first = listed()
  const about = sources.flatMap((source) => (source.about === undefined ? [] : redactor.redact(source.about)))
  const close = () => closeAll(sources)
  return (searched ?? searchIsNeeded(first, window))
    ? { ...searchedTools(listed), about: [...about, redactor.redact(aboutSearch(first))], close }
    : { ...declaredTools(listed), about, close }
}

type Tools = Omit<Toolbox, 'about' | 'close'>

function declaredTools(listed: () => readonly Tool[]): Tools {
  const tools = () => byName(listed())
  return {
    tools,
    definitions: () => listed().map(({ definition }) => definition),
    resolve: (call) => call,
    explain: createCallResolver(tools).explain,
  }
}

function searchedTools(listed: () => readonly Tool[]): Tools {
  const search = createToolSearch(() => listed().filter(({ mcp }) => mcp))
  const findTools = createFindTools(search)
  const tools = () => byName([...listed().map(withSchemaInErrors), findTools])
  return {
    tools,
    definitions: () => [
      ...listed().flatMap(({ mcp, definition }) => (mcp ? [] : definition)),
      findTools.definition,
      CALL_TOOL,
    ],
    ...createCallResolver(tools, search),
  }
}

function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(tools.map((tool) => [tool.definition.name, tool]))
}

async function closeAll(sources: readonly ToolSource[]): Promise<void> {
  await Promise.all(sources.map((source) => source.close()))
}
