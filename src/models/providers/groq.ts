import { chatProvider } from './chat-provider.ts'

/** GroqCloud. It refuses fields that it does not know, such as `reasoning_content`. */
export const groq = chatProvider({
  name: 'groq',
  keyEnvs: ['GROQ_API_KEY'],
  baseUrl: 'https://api.groq.com/openai/v1',
  dialect: {
    limitField: 'max_completion_tokens',
    // `json_schema` is refused in a stream, and by most models ("Structured Outputs" in Groq's documentation).
    omitsResponseFormat: true,
  },
  errors: { overflow: [/reduce the length of the (?:input|messages|prompt)/i] },
})
