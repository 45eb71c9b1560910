import { createHash } from 'node:crypto'
import type { ParameterSupport } from '../parameters.ts'
import { chatProvider } from './chat-provider.ts'

/** Mistral's own API. It refuses fields that it does not know, such as `stream_options`. */
export const mistral = chatProvider({
  name: 'mistral',
  telemetryName: 'mistral_ai',
  keyEnvs: ['MISTRAL_API_KEY'],
  baseUrl: 'https://api.mistral.ai/v1',
  parameters: (model) => ({ levels: effortsOf(model), maxTemperature: 1.5 }),
  dialect: {
    omitsStreamOptions: true,
    encodeCallId: toNineCharacters,
    encodeDocument: (dataUrl) => ({ type: 'document_url', document_url: dataUrl }),
    // "Unexpected role 'user' after role 'tool'"
    separatesToolResults: true,
    cacheFields: (key) => ({ prompt_cache_key: key }),
  },
  errors: {
    overflow: [/too large for model/i],
    overflowTokens: [/contains (?<prompt>\d{1,9}) tokens\D{1,60} \d{1,9} draft tokens\D{1,60}(?<window>\d{1,9})/],
  },
})

/** "Reasoning" in Mistral's documentation. Magistral always reasons. */
function effortsOf(model: string): ParameterSupport['levels'] {
  if (model.includes('magistral')) return undefined
  if (/mistral-large-(?:4|latest)/.test(model)) return ['low', 'medium', 'high']
  return /mistral-(?:small-(?:latest|4|26)|medium-(?:latest|3[.-]5|26))/.test(model) ? ['none', 'high'] : []
}

const DIGEST_CHARS = 9

/** Mistral accepts ids of exactly nine letters and digits. Ids of its own calls are kept. */
function toNineCharacters(callId: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(callId)) return callId
  return createHash('sha256').update(callId).digest('hex').slice(0, DIGEST_CHARS)
}
