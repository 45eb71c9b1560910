import { isJsonObject, objectIn, stringIn } from '../json.ts'
import type { ParameterSupport } from '../parameters.ts'
import { aiSdkProvider, type ProviderCall } from './ai-sdk-provider.ts'

const MIN_OUTPUT_TOKENS = 16

/** The Responses endpoint refuses a smaller limit. */
export function clampToMinimum(tokens: number): number {
  return Math.max(MIN_OUTPUT_TOKENS, tokens)
}

/** Options of the Responses endpoint, on OpenAI and on Azure. */
export function responsesOptions({ cache, parameters: { effort, verbosity } }: ProviderCall) {
  return {
    // Nothing is stored at the provider, so reasoning comes back encrypted.
    store: false,
    // Schemas are the caller's, and strict mode takes only a part of JSON Schema.
    strictJsonSchema: false,
    promptCacheKey: cache?.key,
    // A summary of the reasoning needs a verified organization. By default the package asks for one together with an effort.
    ...(effort && { reasoningEffort: effort, reasoningSummary: null }),
    ...(verbosity && { textVerbosity: verbosity }),
  }
}

/** Efforts by "Reasoning models" in OpenAI's documentation. */
export function openAiParameters(model: string): ParameterSupport {
  if (/^o\d/.test(model)) return { levels: ['low', 'medium', 'high'] }
  const [, major = '0', minor = '0', variant = ''] =
    /^gpt-(\d{1,3})(?:\.(\d{1,3}))?(?:-([a-z]{1,20}))?/.exec(model) ?? []
  const version = Number(major) * 100 + Number(minor)
  if (version < 500 || (version === 500 && variant === 'chat')) {
    return { levels: /^gpt-(?:3|4)/.test(model) || version >= 500 ? [] : undefined, maxTemperature: 2 }
  }
  return {
    levels: effortsOf(version, variant),
    maxTemperature: 2,
    temperatureWith: (level) => level === 'none',
    verbosity: true,
  }
}

function effortsOf(version: number, variant: string): ParameterSupport['levels'] {
  if (variant === 'chat') return undefined
  if (variant === 'pro') return version < 502 ? ['high'] : ['medium', 'high', 'xhigh']
  const usual = ['low', 'medium', 'high'] as const
  if (variant === 'codex') return version < 502 ? usual : [...usual, 'xhigh']
  if (version === 500) return ['minimal', ...usual]
  if (version === 501) return ['none', ...usual]
  if (version < 506) return ['none', ...usual, 'xhigh']
  const canTurnOff = version < 600 || (version === 600 && /sol|luna/.test(variant)) || variant === 'terra'
  return [...(canTurnOff ? (['none'] as const) : []), ...usual, 'xhigh', 'max']
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
  callOptions: (call) => ({ openai: responsesOptions(call) }),
  parameters: openAiParameters,
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
