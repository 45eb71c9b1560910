import type { SharedV4ProviderOptions } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject, stringIn } from '../json.ts'
import { aiSdkProvider, type SearchedPage } from './ai-sdk-provider.ts'
import { claudeParameters, thinkingBudget, thinksAdaptively } from './claude.ts'

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
  parameters: claudeParameters,
  reasoningBudget: thinkingBudget,
  callOptions: ({ model, parameters: { effort }, budget }): SharedV4ProviderOptions => {
    if (effort === 'none') return { anthropic: { thinking: { type: 'disabled' } } }
    if (budget !== undefined) return { anthropic: { thinking: { type: 'enabled', budgetTokens: budget } } }
    if (!thinksAdaptively(model)) return {}
    return { anthropic: { thinking: { type: 'adaptive', display: 'summarized' }, ...(effort && { effort }) } }
  },
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

function readPage(page: JsonObject): SearchedPage {
  return { title: stringIn(page, 'title'), url: stringIn(page, 'url'), date: stringIn(page, 'pageAge') }
}
