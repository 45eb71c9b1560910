/** The search service that the operator named, or why there is none. */
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
  /** Undefined where there is none, or the models have their own. */
  readonly service?: Search
  /** Whether the models' own search is to be used, where they have one. */
  readonly byModel: boolean
  /** For the operator. */
  readonly description: string
  /** What the operator asked for and did not give. */
  readonly unavailable?: string
}

export function createSearch(
  { provider, baseUrl, apiKeyEnv }: Config['search'],
  env: Readonly<Record<string, string | undefined>>,
  egress: Egress,
): SearchChoice {
  if (provider === 'none') return { byModel: false, description: 'none: `search.provider` names one' }
  if (provider === 'model') return { byModel: true, description: "the models' own, where their provider has one" }
  if (provider === 'searxng') return chosen(createSearxng(egress, baseUrl!))
  const unavailable = missingSearchKey({ provider, apiKeyEnv }, env)
  if (unavailable !== undefined) return { byModel: false, description: `none: ${unavailable}`, unavailable }
  const service = HOSTED[provider]
  const apiKey = env[apiKeyEnv ?? service.keyEnv]!.trim()
  return chosen(service.create(egress, baseUrl ?? service.baseUrl, apiKey))
}

/** Which variable must be set for this service, if it is not; without a full stop. */
export function missingSearchKey(
  { provider, apiKeyEnv }: Pick<Config['search'], 'provider' | 'apiKeyEnv'>,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (!isHosted(provider)) return undefined
  const keyEnv = apiKeyEnv ?? HOSTED[provider].keyEnv
  if (env[keyEnv]?.trim()) return undefined
  return `search.provider is ${provider}, and the environment variable ${keyEnv}, which has to hold its key, is not set`
}

function isHosted(provider: Config['search']['provider']): provider is keyof typeof HOSTED {
  return provider in HOSTED
}

function chosen(service: Search): SearchChoice {
  return { service, byModel: false, description: service.description }
}
