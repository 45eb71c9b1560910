/** Description of this server for `GET /v1beta/server` and `errand doctor`: its sandboxes, and its available and missing tools. */
import type { Config } from '../config.ts'
import { TOOL_NAMES, type ToolName } from '../domain/agent.ts'
import { VERSION } from '../domain/version.ts'
import type { ServerFacts } from '../http/server-facts.ts'
import type { Catalogue } from '../models/port.ts'
import type { SandboxFacts } from '../sandbox/port.ts'
import type { SearchChoice } from '../search/create-search.ts'
import type { ToolProvider } from '../tools/port.ts'
import type { Tools } from './tools.ts'

/** Each field is computed when it is read: the workers, and so their tools, can change. */
export function describeServer(
  { providers, search }: Tools,
  catalogue: Catalogue,
  config: Config,
  sandboxFacts: () => SandboxFacts,
): ServerFacts {
  const tools = () => availableTools(providers, catalogue)
  return {
    version: VERSION,
    get sandbox() {
      return sandboxFacts()
    },
    get tools() {
      return tools()
    },
    get missingTools() {
      const missing = TOOL_NAMES.filter((name) => !tools().includes(name))
      return missing.map((name) => ({ name, remedy: remedyFor(name, search) }))
    },
    get search() {
      return tools().includes('web_search') ? config.search.provider : undefined
    },
  }
}

function availableTools(providers: readonly ToolProvider[], catalogue: Catalogue): readonly ToolName[] {
  const bySearchingModels = catalogue.describe().some(({ searches }) => searches) ? (['web_search'] as const) : []
  return [...providers.flatMap(({ offers }) => offers), ...bySearchingModels]
}

/** Instructions for the operator to add a missing tool. Only `browser` and `web_search` can be missing. */
function remedyFor(name: ToolName, search: SearchChoice): string {
  if (name === 'browser') {
    return 'There is no Chromium inside: apt-get install -y chromium-headless-shell (or chromium) brings it; a tree by script/rootfs has it.'
  }
  if (search.unavailable !== undefined) return `${search.unavailable}.`
  if (search.byModel) {
    return 'No model of this server searches by its provider’s own means: name a service in `search.provider`.'
  }
  return 'Name a service in `search.provider`: searxng, brave, tavily, exa, or model.'
}
