import type { ParameterSupport } from '../parameters.ts'
import { chatProvider } from './chat-provider.ts'

/** GroqCloud. It refuses fields that it does not know, such as `reasoning_content`. */
export const groq = chatProvider({
  name: 'groq',
  keyEnvs: ['GROQ_API_KEY'],
  baseUrl: 'https://api.groq.com/openai/v1',
  // "Reasoning" in Groq's documentation.
  parameters: (model) => ({ levels: effortsOf(model), maxTemperature: 2 }),
  dialect: {
    encodeEffort: (level, model) => ({ reasoning_effort: level === 'high' && isQwen(model) ? 'default' : level }),
    limitField: 'max_completion_tokens',
    // `json_schema` is refused in a stream, and by most models ("Structured Outputs" in Groq's documentation).
    omitsResponseFormat: true,
  },
  errors: { overflow: [/reduce the length of the (?:input|messages|prompt)/i] },
})

function isQwen(model: string): boolean {
  return model.includes('qwen3')
}

/** Qwen's reasoning can only be on or off. */
function effortsOf(model: string): ParameterSupport['levels'] {
  if (isQwen(model)) return ['none', 'high']
  return model.includes('gpt-oss') ? ['low', 'medium', 'high'] : []
}
