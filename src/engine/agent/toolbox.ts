/** A run's tools from all providers. If two tools have the same name, the first provider's wins. */
import type { RunScope, Tool, ToolProvider, ToolSource } from '../../tools/port.ts'
import type { Redactor } from '../run/redactor.ts'

export interface Toolbox {
  /** The current tools by name. */
  tools(): ReadonlyMap<string, Tool>
  /** Introductions of the tools for the system prompt. */
  readonly about: readonly string[]
  close(): Promise<void>
}

/** If a provider fails, closes the others' tools and rejects with the first error. */
export async function openToolbox(
  providers: readonly ToolProvider[],
  run: RunScope,
  redactor: Redactor,
): Promise<Toolbox> {
  const opened = await Promise.allSettled(providers.map((provider) => provider.open(run)))
  const sources = opened.flatMap((outcome) => (outcome.status === 'fulfilled' && outcome.value ? [outcome.value] : []))
  const failed = opened.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    await closeAll(sources)
    throw failed.reason
  }
  return {
    tools() {
      const tools = new Map<string, Tool>()
      for (const tool of sources.flatMap((source) => source.tools())) {
        const { definition } = tool
        // Descriptions are external too. A tool whose description contains a secret of the run is left out.
        if (!tools.has(definition.name) && redactor.isClean(definition)) tools.set(definition.name, tool)
      }
      return tools
    },
    about: sources.flatMap(({ about }) => (about === undefined ? [] : redactor.redact(about))),
    close: () => closeAll(sources),
  }
}

async function closeAll(sources: readonly ToolSource[]): Promise<void> {
  await Promise.all(sources.map((source) => source.close()))
}
