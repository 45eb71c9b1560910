/**
 * OpenAI's chat completions as server-sent events. By default it checks nothing and reports the same usage for every
 * call, like the simplest compatible servers. Each option adds a rule of real servers.
 */
import { contextRefusal, type WindowError } from './context-window.ts'
import { createPromptCache, type PromptBlock } from './prompt-cache.ts'
import { cutAtCharacters, type Fragment, type UsageReply } from './script.ts'
import type { Admission, Answer, Dialect, Refusal, Rendered } from './serve.ts'
import { type StrictServer, strictRefusal } from './strict-servers.ts'
import { CHARACTERS_PER_TOKEN, countedUsage, jsonBlock, sumTokens } from './token-counts.ts'

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly response_format?: object
  readonly prompt_cache_key?: string
  readonly [field: string]: unknown
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string | null | readonly { readonly type: string; readonly text?: string }[]
  readonly reasoning_content?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[]
  readonly tool_call_id?: string
}

export interface ChatOptions {
  /** Models that `GET /v1/models` lists. */
  readonly models?: readonly { readonly id: string; readonly owned_by?: string }[]
  /** Counts tokens (four characters each), uses a prompt cache, and cuts an answer at the request's limit. */
  readonly counts?: boolean
  /** Maximum tokens of prompt and limit together, and the server whose error message is used (default `openai`). */
  readonly window?: number
  readonly windowError?: WindowError
  /** Refuses a tool call that is not directly followed by its result, and a result without a call. */
  readonly pairsCalls?: boolean
  readonly maxImages?: number
  /** Like DeepSeek and Kimi: an assistant message with tool calls must have `reasoning_content`, which may be empty. */
  readonly wantsReasoning?: boolean
  /** Like some versions of vLLM: with `response_format` the model calls no tools and writes `{}`. */
  readonly formatHidesTools?: boolean
  /** Like OpenAI's newer models: refuses `max_tokens`. */
  readonly wantsCompletionTokens?: boolean
  /** Refuses what this hosted provider refuses. */
  readonly strict?: StrictServer
  /** Clock of the prompt cache, in milliseconds. */
  readonly now?: () => number
}

export function chatCompletions(options: ChatOptions = {}): Dialect<ChatRequest> {
  const { models = [{ id: 'fake', owned_by: 'fake' }], counts = false } = options
  const cache = createPromptCache({ now: options.now, automatic: true, minTokens: 1024 })

  function admit(body: ChatRequest): Admission | Refusal {
    const blocks = counts || options.window ? blocksOf(body) : []
    const tokens = sumTokens(blocks)
    const limit = body.max_completion_tokens ?? body.max_tokens ?? 0
    const refusal =
      limitRefusal(body, options) ??
      strictRefusal(body, options.strict) ??
      contextRefusal(options.windowError ?? 'openai', tokens, limit, options.window) ??
      pairingRefusal(body, options) ??
      reasoningRefusal(body, options) ??
      imageRefusal(body, options)
    return refusal ?? (counts ? { billed: cache.bill(blocks, body.prompt_cache_key) } : {})
  }

  function shown(answer: Answer<ChatRequest>): Answer<ChatRequest> {
    return options.formatHidesTools && answer.body.response_format ? withoutCalls(answer) : answer
  }

  return {
    model: { provider: 'openai-compatible', model: 'fake' },
    base: '/v1',
    stateless: !counts && !options.formatHidesTools,
    serves: (path) => path.endsWith('/chat/completions'),
    get: (path) => (path === '/v1/models' ? modelList(models) : undefined),
    messages: ({ messages }) => messages.map((message) => ({ role: message.role, text: textOf(message) })),
    admit,
    cut: (body, fragments) => {
      const limit = body.max_completion_tokens ?? body.max_tokens
      return counts && limit !== undefined ? cutAtCharacters(fragments, limit * CHARACTERS_PER_TOKEN) : undefined
    },
    callId: (turn, index) => `call_${turn}_${index}`,
    render: (answer) => render(shown(answer)),
    whole: (answer) => whole(shown(answer)),
    errorBody: ({ message, code }) => ({ error: { message, code: code ?? null } }),
    errorEvent: ({ message, code = 'server_error' }) => event({ error: { message, code } }),
  }
}

function modelList(models: NonNullable<ChatOptions['models']>): object {
  const data = models.map(({ id, owned_by = 'fake' }) => ({ id, object: 'model', owned_by }))
  return { object: 'list', data }
}

function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n')
}

function blocksOf({ tools = [], messages }: ChatRequest): PromptBlock[] {
  return [tools, ...messages].map(jsonBlock)
}

function limitRefusal({ max_tokens }: ChatRequest, options: ChatOptions): Refusal | undefined {
  if (!options.wantsCompletionTokens || max_tokens === undefined) return undefined
  const message =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
  return { status: 400, message, code: 'unsupported_parameter' }
}

function pairingRefusal({ messages }: ChatRequest, { pairsCalls }: ChatOptions): Refusal | undefined {
  if (!pairsCalls) return undefined
  let open = new Set<string>()
  for (const message of [...messages, undefined]) {
    if (message?.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? '')) {
        const message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        return { status: 400, message: `Invalid parameter: ${message}` }
      }
    } else if (open.size > 0) {
      const message =
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
        `The following tool_call_ids did not have response messages: ${[...open].join(', ')}`
      return { status: 400, message }
    } else open = new Set(message?.tool_calls?.map(({ id }) => id))
  }
  return undefined
}

function reasoningRefusal({ messages }: ChatRequest, { wantsReasoning }: ChatOptions): Refusal | undefined {
  if (!wantsReasoning) return undefined
  const missing = messages.some(({ tool_calls, reasoning_content }) => tool_calls && reasoning_content === undefined)
  if (!missing) return undefined
  const message = 'The `reasoning_content` in the thinking mode must be passed back to the API.'
  return { status: 400, message, code: 'invalid_request_error' }
}

function imageRefusal({ messages }: ChatRequest, { maxImages = Infinity }: ChatOptions): Refusal | undefined {
  const images = messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.filter(({ type }) => type === 'image_url') : [],
  )
  if (images.length <= maxImages) return undefined
  return { status: 400, message: `At most ${maxImages} image(s) may be provided in one prompt.` }
}

function withoutCalls(answer: Answer<ChatRequest>): Answer<ChatRequest> {
  const rest = answer.fragments.filter(({ kind }) => kind !== 'args')
  if (rest.length === answer.fragments.length) return answer
  return { ...answer, fragments: [...rest, { kind: 'text', text: '{}', first: true, last: true }], finish: 'stop' }
}

function event(chunk: Record<string, unknown>): Buffer {
  const head = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 0, model: 'fake' }
  return Buffer.from(`data: ${JSON.stringify({ ...head, ...chunk })}\n\n`)
}

function render(answer: Answer<ChatRequest>): Rendered {
  const usage = usageOf(answer)
  const end = { index: 0, delta: {}, finish_reason: answer.finish }
  return {
    head: [],
    parts: answer.fragments.map((fragment) => event({ choices: [{ index: 0, delta: deltaOf(fragment) }] })),
    tail: [event({ choices: [end] }), ...(usage ? [event({ choices: [], usage })] : [])],
    done: [Buffer.from('data: [DONE]\n\n')],
  }
}

function deltaOf({ kind, text, first, call }: Fragment): Record<string, unknown> {
  if (kind === 'reasoning') return { reasoning_content: text }
  if (kind === 'text') return { content: text }
  const { index, id, name } = call!
  return {
    tool_calls: [
      first
        ? { index, id, type: 'function', function: { name, arguments: text } }
        : { index, function: { arguments: text } },
    ],
  }
}

function whole(answer: Answer<ChatRequest>): object {
  const joined = (kind: Fragment['kind'], index?: number) =>
    answer.fragments
      .filter((fragment) => fragment.kind === kind && fragment.call?.index === index)
      .map(({ text }) => text)
      .join('')
  const calls = answer.fragments.flatMap(({ first, call }) =>
    first && call
      ? [{ id: call.id, type: 'function', function: { name: call.name, arguments: joined('args', call.index) } }]
      : [],
  )
  const reasoning = joined('reasoning')
  const message = {
    role: 'assistant',
    content: joined('text') || null,
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  const choices = [{ index: 0, message, finish_reason: answer.finish }]
  return { id: 'chatcmpl-fake', object: 'chat.completion', created: 0, model: 'fake', choices, usage: usageOf(answer) }
}

function usageOf(answer: Answer<ChatRequest>): Record<string, unknown> | undefined {
  const usage = answer.usage ?? countedUsageOf(answer)
  if (usage === false) return undefined
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  }
}

function countedUsageOf({ admission: { billed }, fragments }: Answer<ChatRequest>): UsageReply {
  return billed ? countedUsage(billed, fragments) : { input: 10, output: 5 }
}
