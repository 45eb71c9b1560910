import { chatProvider } from './chat-provider.ts'

/** DeepSeek's own API. */
export const deepSeek = chatProvider({
  name: 'deepseek',
  keyEnvs: ['DEEPSEEK_API_KEY'],
  baseUrl: 'https://api.deepseek.com',
  // A tool result is refused if the reasoning before its call is missing ("Thinking Mode" in DeepSeek's documentation).
  sendsReasoning: () => true,
  // With reasoning, a temperature has no effect.
  parameters: () => ({
    levels: ['none', 'low', 'high', 'max'],
    maxTemperature: 2,
    temperatureWith: (level) => level === 'none',
  }),
  dialect: {
    encodeEffort: (level) =>
      level === 'none'
        ? { thinking: { type: 'disabled' } }
        : { thinking: { type: 'enabled' }, reasoning_effort: level },
    // `json_schema` is refused: "This response_format type is unavailable now".
    omitsResponseFormat: true,
  },
})
