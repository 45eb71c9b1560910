/** The tools that runs can use: built-in ones, skills, web search, the browser and MCP servers. */
import type { Credentials } from '../accounts/credentials.ts'
import type { Vault } from '../accounts/vault.ts'
import type { Config } from '../config.ts'
import { createLibraryFetch } from '../egress/library-fetch.ts'
import type { Egress } from '../egress/port.ts'
import type { SandboxFacts } from '../sandbox/port.ts'
import { createSearch, type SearchChoice } from '../search/create-search.ts'
import { createBrowserTools } from '../tools/browser/browser.ts'
import type { BrowserSettings } from '../tools/browser/lifecycle.ts'
import { createMcp, type McpOptions } from '../tools/mcp/provider.ts'
import type { ToolProvider } from '../tools/port.ts'
import { createSkillTools } from '../tools/skill.ts'
import { createSandboxTools } from '../tools/tools.ts'
import { createWebSearch } from '../tools/web-search.ts'
import type { ComposeContext } from './context.ts'
import type { SkillRoom } from './files.ts'

export interface Tools {
  readonly providers: readonly ToolProvider[]
  readonly search: SearchChoice
  readonly mcp: McpOptions
}

interface ToolParts {
  readonly egress: Egress
  readonly skills: SkillRoom
  readonly credentials: Credentials
  readonly vault: Vault
  readonly sandboxFacts: () => SandboxFacts
}

export function createTools({ config, env, log }: ComposeContext, parts: ToolParts): Tools {
  const { egress, skills, credentials, vault, sandboxFacts } = parts
  const search = createSearch(config.search, env, egress)
  if (search.unavailable !== undefined) log.warn(`web_search is not offered: ${search.unavailable}`)
  const fetchWith: McpOptions['fetchWith'] = (terms) => createLibraryFetch(egress, terms)
  const mcp = { servers: config.mcp, credentials, unseal: vault.unseal, fetchWith, env }
  const providers = [
    createSandboxTools(),
    createSkillTools(skills.cache),
    createWebSearch(search.service),
    createBrowserTools(() => browserSettings(config, sandboxFacts())),
    createMcp(mcp),
  ]
  return { providers, search, mcp }
}

/** Undefined if the sandboxes have no Chromium. */
function browserSettings({ browser, limits }: Config, facts: SandboxFacts): BrowserSettings | undefined {
  const executable = browser.executable ?? facts.browser
  return executable === undefined ? undefined : { ...browser, executable, ceiling: limits.network }
}
