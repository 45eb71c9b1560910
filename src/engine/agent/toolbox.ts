/** A run's tools, from all that provide some. Of two tools with one name the first provider's is taken. */
import type { RunScope, Tool, ToolProvider, ToolSource } from '../../tools/port.ts'
import type { Redactor } from '../run/redactor.ts'

export interface Toolbox {
  /** By name, as they are now. */
  tools(): ReadonlyMap<string, Tool>
  /** What the model is told of them beforehand. */
  readonly about: readonly string[]
  close(): Promise<void>
}

/** Rejects with what the first provider threw, once all have settled; what the others opened is closed then. */
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
        // A description comes from outside too. One that holds a secret of the run is not put before the model.
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
