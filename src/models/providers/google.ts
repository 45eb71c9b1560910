import type { SharedV4ProviderOptions } from '@ai-sdk/provider'
import { isJsonObject, objectIn, stringIn } from '../json.ts'
import { aiSdkProvider, type SearchReport } from './ai-sdk-provider.ts'

const MAX_OUTPUT_TOKENS = 65_536

/** Google's Gemini API. */
export const google = aiSdkProvider({
  name: 'google',
  telemetryName: 'gcp.gemini',
  keyEnvs: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  acceptsMedia: true,
  specModels: () => ({
    'svc-3.5-flash': { model: 'gemini-3.8-flash' },
    'svc-3.1-pro': { model: 'gemini-3.1-pro-preview' },
  }),
  async load({ model, apiKey = '', baseUrl }, fetch) {
    const { createGoogle } = await import('@ai-sdk/google')
    const baseURL = baseUrl ?? 'https://generativelanguage.googleapis.com/v1beta'
    return createGoogle({ apiKey, baseURL, fetch })(model)
  },
  callOptions: (model): SharedV4ProviderOptions =>
    /gemini-(2\.5|[3-9])|-latest/.test(model) ? { google: { thinkingConfig: { includeThoughts: true } } } : {},
  clampOutputTokens: (tokens) => Math.min(MAX_OUTPUT_TOKENS, tokens),
  acceptsUnsignedReasoning: true,
  // With search, Gemini before 3 cannot call any other tool.
  canSearch: (model) => /gemini-([3-9]|\d\d)/.test(model),
  search: {
    tool: { type: 'provider', id: 'google.google_search', name: 'google_search', args: {} },
    readSources: (metadata) => readGrounding(metadata?.google?.groundingMetadata),
  },
  errors: {
    overflow: [/token count.{0,40}(?:exceeds|supports up to)/i],
    overflowTokens: [/token count (?:is )?\(?(?<prompt>\d{1,9})\)?\D{1,60}(?<window>\d{1,9})/],
  },
})

/** Undefined if the model searched nothing. */
function readGrounding(grounding: unknown): SearchReport | undefined {
  if (!isJsonObject(grounding) || !Array.isArray(grounding.webSearchQueries)) return undefined
  const queries = grounding.webSearchQueries.filter((query) => typeof query === 'string')
  if (queries.length === 0) return undefined
  const chunks = Array.isArray(grounding.groundingChunks) ? grounding.groundingChunks.filter(isJsonObject) : []
  const pages = chunks
    .filter(({ web }) => isJsonObject(web))
    .map((chunk) => objectIn(chunk, 'web'))
    .map((web) => ({ title: stringIn(web, 'title'), url: stringIn(web, 'uri') }))
  return { args: queries.length === 1 ? { query: queries[0] } : { queries }, pages }
}
