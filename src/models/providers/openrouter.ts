import { chatProvider } from './chat-provider.ts'
import { refusesLostReasoning } from './openai-compatible.ts'

const BASE_URL = 'https://openrouter.ai/api/v1'

/** OpenRouter: the models of many providers with one key. */
export const openRouter = chatProvider({
  name: 'openrouter',
  keyEnvs: ['OPENROUTER_API_KEY'],
  baseUrl: BASE_URL,
  takesSendReasoning: true,
  sendsReasoning: (model) => refusesLostReasoning(BASE_URL, model),
  // OpenRouter leaves out what the model does not accept, and maps efforts to those that it has.
  parameters: () => ({ levels: ['none', 'low', 'medium', 'high', 'max'], maxTemperature: 2, verbosity: true }),
  dialect: {
    encodeEffort: (level) => ({ reasoning: { effort: level } }),
    // The requests of a session go to the same provider, which has its prompt in the cache.
    cacheFields: (key) => ({ session_id: key }),
    // The other models cache by themselves ("Prompt Caching" in OpenRouter's documentation).
    cachesAtBreakpoints: (model) => model.startsWith('anthropic/'),
    // Gemini refuses a tool result without the signature of its call.
    returnsReasoningDetails: true,
  },
})
