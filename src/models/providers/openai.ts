import { isJsonObject, objectIn, stringIn } from '../json.ts'
import { aiSdkProvider } from './ai-sdk-provider.ts'

const MIN_OUTPUT_TOKENS = 16

/** The Responses endpoint refuses a smaller limit. */
export function clampToMinimum(tokens: number): number {
  return Math.max(MIN_OUTPUT_TOKENS, tokens)
}

/** OpenAI's own API, by its Responses endpoint. */
export const openAi = aiSdkProvider({
  name: 'openai',
  keyEnvs: ['OPENAI_API_KEY'],
  baseUrlEnv: 'OPENAI_BASE_URL',
  acceptsMedia: true,
  specModels: () => ({
    'svc-3.5-flash': { model: 'gpt-6-luna' },
    'svc-3.1-pro': { model: 'gpt-6-sol' },
  }),
  async load({ model, apiKey = '', baseUrl }, fetch) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    return createOpenAI({ apiKey, baseURL: baseUrl ?? 'https://api.openai.com/v1', fetch }).responses(model)
  },
  // Nothing is stored at OpenAI, so reasoning comes back encrypted. Schemas are the caller's, and strict mode takes only
  // a part of JSON Schema.
  callOptions: (_, cache) => ({ openai: { store: false, strictJsonSchema: false, promptCacheKey: cache?.key } }),
  clampOutputTokens: clampToMinimum,
  canSearch: () => true,
  search: {
    tool: { type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} },
    readResult(result) {
      if (!isJsonObject(result)) return { pages: [] }
      // The call's own arguments are empty: the query, or the page that was opened, is reported with the result.
      const { type: _, ...args } = objectIn(result, 'action')
      const sources = Array.isArray(result.sources) ? result.sources.filter(isJsonObject) : []
      const pages = sources.map((source) => ({
        title: stringIn(source, 'title'),
        url: stringIn(source, 'url') || stringIn(source, 'name'),
      }))
      return { args, pages }
    },
  },
  errors: { overflowCodes: /context_length_exceeded/i },
})
