/** Error responses to a prompt that is too long, with the messages of real providers and servers. */
import type { Refusal } from './serve.ts'

type Refuse = (prompt: number, limit: number, window: number) => Refusal

/** Error responses by server. `code` is sent in the error body. */
const WINDOW_ERRORS = {
  anthropic: (prompt, limit, window) => ({
    status: 400,
    code: 'invalid_request_error',
    message:
      prompt > window
        ? `prompt is too long: ${prompt} tokens > ${window} maximum`
        : `input length and \`max_tokens\` exceed context limit: ${prompt} + ${limit} > ${window}, decrease input length or \`max_tokens\` and try again`,
  }),
  openai: (prompt, limit, window) => ({
    status: 400,
    code: 'context_length_exceeded',
    message: `This model's maximum context length is ${window} tokens. However, you requested ${prompt + limit} tokens (${prompt} in the messages, ${limit} in the completion). Please reduce the length of the messages or completion.`,
  }),
  vllm: (prompt, limit, window) =>
    prompt > window
      ? {
          status: 400,
          message: `This model's maximum context length is ${window} tokens. However, your request has ${prompt} input tokens. Please reduce the length of the input messages.`,
        }
      : {
          status: 400,
          message: `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${window} tokens and your request has ${prompt} input tokens (${limit} > ${window} - ${prompt}).`,
        },
  responses: () => ({
    status: 400,
    code: 'context_length_exceeded',
    message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
  }),
  gemini: (prompt, _, window) => ({
    status: 400,
    message: `The input token count (${prompt}) exceeds the maximum number of tokens allowed (${window}).`,
  }),
  'llama.cpp': (prompt, _, window) => ({
    status: 400,
    code: 'exceed_context_size_error',
    message: `the request exceeds the available context size (${window} tokens), try increasing it: ${prompt} tokens`,
  }),
  openrouter: (prompt, limit, window) => ({
    status: 400,
    message: `This endpoint's maximum context length is ${window} tokens. However, you requested about ${prompt + limit} tokens (${prompt} of text input, ${limit} in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.`,
  }),
} as const satisfies Record<string, Refuse>

export type WindowError = keyof typeof WINDOW_ERRORS

export function contextRefusal(
  words: WindowError,
  prompt: number,
  limit: number,
  window: number | undefined,
): Refusal | undefined {
  // llama.cpp checks only the prompt: its answer ends at the end of the window.
  const asked = words === 'llama.cpp' ? prompt : prompt + limit
  return window === undefined || asked <= window ? undefined : WINDOW_ERRORS[words](prompt, limit, window)
}
