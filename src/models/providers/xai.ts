import { chatProvider } from './chat-provider.ts'

/** xAI's Grok models. */
export const xai = chatProvider({
  name: 'xai',
  telemetryName: 'x_ai',
  keyEnvs: ['XAI_API_KEY'],
  baseUrl: 'https://api.x.ai/v1',
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
