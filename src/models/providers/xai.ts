import type { ParameterSupport } from '../parameters.ts'
import { chatProvider } from './chat-provider.ts'

/** xAI's Grok models. */
export const xai = chatProvider({
  name: 'xai',
  telemetryName: 'x_ai',
  keyEnvs: ['XAI_API_KEY'],
  baseUrl: 'https://api.x.ai/v1',
  parameters: (model) => ({ levels: effortsOf(model), maxTemperature: 2 }),
  dialect: {
    limitField: 'max_completion_tokens',
    // Each server has its own cache ("Maximizing Cache Hits" in xAI's documentation).
    cacheHeaders: (key) => ({ 'x-grok-conv-id': key }),
  },
  errors: {
    overflow: [/maximum (?:allowed )?(?:input|prompt) length/i],
    overflowTokens: [/prompt length is (?<window>\d{1,9})\D{1,60}(?<prompt>\d{1,9}) tokens/],
  },
})

/** "Reasoning" in xAI's documentation. Grok 4 and earlier versions of it have no effort. */
function effortsOf(model: string): ParameterSupport['levels'] {
  if (model.includes('non-reasoning')) return []
  if (model.includes('grok-3-mini')) return ['low', 'high']
  if (/grok-4\.3/.test(model)) return ['none', 'low', 'medium', 'high']
  return /grok-(?:4\.[5-9]|[5-9]|latest)/.test(model) ? ['low', 'medium', 'high'] : undefined
}
