import type { SharedV4ProviderOptions } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject, stringIn } from '../json.ts'
import { aiSdkProvider, type SearchedPage } from './ai-sdk-provider.ts'

/** Searches in one model call: limits the cost. */
const MAX_SEARCHES = 8

export const anthropic = aiSdkProvider({
  name: 'anthropic',
  keyEnvs: ['ANTHROPIC_API_KEY'],
  baseUrlEnv: 'ANTHROPIC_BASE_URL',
  acceptsMedia: true,
  specModels: () => ({
    'svc-3.5-flash': { model: 'claude-haiku-5-5' },
    'svc-3.1-pro': { model: 'claude-opus-5-5', price: { input: 4, output: 20, cachedInput: 0.4, cacheWrite: 5 } },
  }),
  async load({ model, apiKey = '', baseUrl }, fetch) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    return createAnthropic({ apiKey, baseURL: baseUrl ?? 'https://api.anthropic.com/v1', fetch })(model)
  },
  callOptions: (model): SharedV4ProviderOptions =>
    thinksAdaptively(model) ? { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } } : {},
  cacheBreakpoint: (_, { long }): SharedV4ProviderOptions => ({
    anthropic: { cacheControl: { type: 'ephemeral', ...(long && { ttl: '1h' }) } },
  }),
  // Anthropic interrupts a turn with long searches.
  pauseReason: 'pause_turn',
  canSearch: () => true,
  search: {
    // Later versions of the tool need Anthropic's code execution as well.
    tool: {
      type: 'provider',
      id: 'anthropic.web_search_20250305',
      name: 'web_search',
      args: { maxUses: MAX_SEARCHES },
    },
    readResult: (result) => ({ pages: Array.isArray(result) ? result.filter(isJsonObject).map(readPage) : [] }),
  },
  errors: {
    overflow: [/prompt (?:is )?too long/i],
    overflowTokens: [
      /(?<prompt>\d{1,9}) tokens > (?<window>\d{1,9})/,
      /context limit: (?<prompt>\d{1,9}) \+ \d{1,9} > (?<window>\d{1,9})/,
    ],
    outputLimit: [/max_\w{0,20}tokens\W{1,3}\d{1,9} > (\d{1,9})/i],
  },
})

function thinksAdaptively(model: string): boolean {
  return /claude-(opus-4-[6-9]|sonnet-4-6|(opus|sonnet|haiku|fable)-[5-9])/.test(model)
}

function readPage(page: JsonObject): SearchedPage {
  return { title: stringIn(page, 'title'), url: stringIn(page, 'url'), date: stringIn(page, 'pageAge') }
}
