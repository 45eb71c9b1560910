/** Creates the search service that the operator configured, or reports why there is none. */
import type { Config } from '../config.ts'
import type { Egress } from '../egress/port.ts'
import { createBrave } from './brave.ts'
import { createExa } from './exa.ts'
import type { Search } from './port.ts'
import { createSearxng } from './searxng.ts'
import { createTavily } from './tavily.ts'

type Hosted = Exclude<Config['search']['provider'], 'none' | 'model' | 'searxng'>

const HOSTED: Readonly<
  Record<Hosted, { readonly baseUrl: string; readonly keyEnv: string; readonly create: typeof createBrave }>
> = {
  brave: { baseUrl: 'https://api.search.brave.com', keyEnv: 'BRAVE_API_KEY', create: createBrave },
  tavily: { baseUrl: 'https://api.tavily.com', keyEnv: 'TAVILY_API_KEY', create: createTavily },
  exa: { baseUrl: 'https://api.exa.ai', keyEnv: 'EXA_API_KEY', create: createExa },
}

export interface SearchChoice {
  /** Undefined if there is none, or if the models use their own. */
  readonly service?: Search
  /** True if models use their provider's search, if it has one. */
  readonly byModel: boolean
  /** For the operator. */
  readonly description: string
  /** The missing setting, if the configured service can't be used. */
  readonly unavailable?: string
}

export function createSearch(
  { provider, baseUrl, apiKeyEnv }: Config['search'],
  env: Readonly<Record<string, string | undefined>>,
  egress: Egress,
): SearchChoice {
  if (provider === 'none') return { byModel: false, description: 'none: set `search.provider` to use one' }
  if (provider === 'model') return { byModel: true, description: "the models' own, where their provider has one" }
  if (provider === 'searxng') return chosen(createSearxng(egress, baseUrl!))
  const unavailable = missingSearchKey({ provider, apiKeyEnv }, env)
  if (unavailable !== undefined) return { byModel: false, description: `none: ${unavailable}`, unavailable }
  const service = HOSTED[provider]
  const apiKey = env[apiKeyEnv ?? service.keyEnv]!.trim()
  return chosen(service.create(egress, baseUrl ?? service.baseUrl, apiKey))
}

/** Names the environment variable that this service needs and that is not set. Without a final period. */
export function missingSearchKey(
  { provider, apiKeyEnv }: Pick<Config['search'], 'provider' | 'apiKeyEnv'>,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (!isHosted(provider)) return undefined
  const keyEnv = apiKeyEnv ?? HOSTED[provider].keyEnv
  if (env[keyEnv]?.trim()) return undefined
  return `search.provider is ${provider}, but the environment variable ${keyEnv} with its API key is not set`
}

function isHosted(provider: Config['search']['provider']): provider is keyof typeof HOSTED {
  return provider in HOSTED
}

function chosen(service: Search): SearchChoice {
  return { service, byModel: false, description: service.description }
}
