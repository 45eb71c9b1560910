import type { SharedV4ProviderOptions } from '@ai-sdk/provider'
import { isJsonObject, objectIn, stringIn } from '../json.ts'
import type { Level, ParameterSupport } from '../parameters.ts'
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
  parameters: geminiParameters,
  callOptions: ({ model, parameters: { effort } }): SharedV4ProviderOptions =>
    thinks(model)
      ? { google: { thinkingConfig: { includeThoughts: effort !== 'none', ...encodeEffort(model, effort) } } }
      : {},
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

function thinks(model: string): boolean {
  return /gemini-(2\.5|[3-9])|-latest/.test(model)
}

/** Gemini 2.5 takes a budget in tokens, later models take a level ("Thinking" in the Gemini API's documentation). */
function geminiParameters(model: string): ParameterSupport {
  const temperature = { maxTemperature: 2 }
  if (!thinks(model)) return { levels: [], ...temperature }
  const usual = ['low', 'medium', 'high'] as const
  if (!takesBudget(model)) return { levels: /pro|-latest/.test(model) ? usual : ['minimal', ...usual], ...temperature }
  return { levels: model.includes('pro') ? [...usual, 'max'] : ['none', ...usual], ...temperature }
}

function takesBudget(model: string): boolean {
  return model.includes('gemini-2.5')
}

/** Budgets by "OpenAI compatibility" in the Gemini API's documentation. `max` is the most that 2.5 Pro accepts. */
const BUDGETS: Readonly<Partial<Record<Level, number>>> = {
  none: 0,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  max: 32_768,
}

function encodeEffort(model: string, effort: Level | undefined) {
  if (!effort) return {}
  return takesBudget(model) ? { thinkingBudget: BUDGETS[effort]! } : { thinkingLevel: effort }
}

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
