import { chatProvider } from './chat-provider.ts'

/** DeepSeek's own API. */
export const deepSeek = chatProvider({
  name: 'deepseek',
  keyEnvs: ['DEEPSEEK_API_KEY'],
  baseUrl: 'https://api.deepseek.com',
  // A tool result is refused if the reasoning before its call is missing ("Thinking Mode" in DeepSeek's documentation).
  sendsReasoning: () => true,
  dialect: {
    // `json_schema` is refused: "This response_format type is unavailable now".
    omitsResponseFormat: true,
  },
})
