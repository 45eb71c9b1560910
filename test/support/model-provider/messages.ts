/**
 * Anthropic's Messages API as server-sent events, as exact as its clients can observe. Thinking blocks are signed over
 * everything before them, tool calls are paired with results, prompts are cached, and limits apply. Refusals have the
 * API's messages. A token is four characters.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { contextRefusal } from './context-window.ts'
import { flatten, type MessagesRequest, promptBlocks, shapeRefusal, turnsOf } from './messages-request.ts'
import { createPromptCache } from './prompt-cache.ts'
import { cutAtCharacters, type Fragment } from './script.ts'
import {
  type Admission,
  type Answer,
  type Dialect,
  type ModelProvider,
  type Refusal,
  type Rendered,
  type ServeOptions,
  serveDialect,
} from './serve.ts'
import { checkSignatures, createSigner } from './thinking-signatures.ts'
import { CHARACTERS_PER_TOKEN, countedUsage, sumTokens } from './token-counts.ts'

export type { MessagesRequest } from './messages-request.ts'

export interface MessagesOptions {
  /** The model's name in the provider's API. Default `claude-opus-5-5`. */
  readonly model?: string
  /** Maximum number of images in one request. Default 100. */
  readonly maxImages?: number
  /** Maximum tokens of prompt and `max_tokens` together. Default 200,000. */
  readonly window?: number
  /** Maximum value of `max_tokens`. */
  readonly maxOutput?: number
  /**
   * Accepts a final assistant message (a prefill), which the answer continues. Current models refuse it. Default true.
   */
  readonly prefill?: boolean
  /** If true, an answer does not stop at `max_tokens`. */
  readonly ignoresLimit?: boolean
  /** Minimum size of a cached prompt, in tokens. Default 1024. */
  readonly minCacheTokens?: number
  /** Clock of the prompt cache, in milliseconds. */
  readonly now?: () => number
}

export type FakeAnthropic = ModelProvider<MessagesRequest>

export function openFakeAnthropic(options: MessagesOptions & ServeOptions = {}): Promise<FakeAnthropic> {
  return serveDialect(anthropicMessages(options), options)
}

function anthropicMessages(options: MessagesOptions): Dialect<MessagesRequest> {
  const { model = 'claude-opus-5-5', window = 200_000, minCacheTokens = 1024, maxOutput, prefill = true } = options
  const cache = createPromptCache({ now: options.now, minTokens: minCacheTokens })

  function admit(body: MessagesRequest, headers: IncomingHttpHeaders): Admission | Refusal {
    const signatures = checkSignatures(body, headers)
    const blocks = promptBlocks(body)
    const tokens = sumTokens(blocks)
    const refusal =
      shapeRefusal(body, options.maxImages ?? 100) ??
      prefillRefusal(body, prefill) ??
      outputRefusal(body, maxOutput) ??
      ('status' in signatures ? signatures : undefined) ??
      contextRefusal('anthropic', tokens, body.max_tokens ?? 0, window)
    if (refusal) return refusal
    const dropped = 'dropped' in signatures ? signatures.dropped : []
    return { billed: cache.bill(blocks), dropped, prefill: prefillOf(body) }
  }

  return {
    model: { provider: 'anthropic', model, apiKeyEnv: 'FAKE_ANTHROPIC_KEY' },
    env: { FAKE_ANTHROPIC_KEY: 'sk-ant-fake' },
    base: '/v1',
    stateless: false,
    serves: (path) => path === '/v1/messages',
    messages: (body) => {
      const turns = turnsOf(body).map(({ role, blocks }) => ({
        role,
        text: blocks.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n'),
      }))
      // A prefill belongs to the turn that is requested.
      return turns.at(-1)?.role === 'assistant' ? turns.slice(0, -1) : turns
    },
    admit,
    cut: ({ max_tokens = 0 }, fragments) =>
      options.ignoresLimit ? undefined : cutAtCharacters(fragments, max_tokens * CHARACTERS_PER_TOKEN),
    callId: (turn, index) => `toolu_${turn}_${index}`,
    render,
    whole: (answer) => ({ ...messageOf(answer), ...endOf(answer), content: contentOf(answer) }),
    errorBody: ({ status, message, code }) => ({
      type: 'error',
      error: { type: code ?? ERROR_TYPES[status] ?? 'api_error', message },
      request_id: 'req_fake',
    }),
    errorEvent: ({ message, code = 'overloaded_error' }) => event({ type: 'error', error: { type: code, message } }),
  }
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function prefillOf({ messages }: MessagesRequest): string | undefined {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return undefined
  return flatten([last])
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('')
}

function prefillRefusal(body: MessagesRequest, supported: boolean): Refusal | undefined {
  const prefill = prefillOf(body)
  if (prefill === undefined) return undefined
  const message = !supported
    ? 'This model does not support assistant message prefill. The conversation must end with a user message.'
    : /\s$/.test(prefill)
      ? 'messages: final assistant content cannot end with trailing whitespace'
      : undefined
  return message === undefined ? undefined : { status: 400, message }
}

function outputRefusal({ max_tokens, model }: MessagesRequest, most = Number.POSITIVE_INFINITY): Refusal | undefined {
  if (max_tokens === undefined) return { status: 400, message: 'max_tokens: Field required' }
  if (max_tokens <= most) return undefined
  const message = `max_tokens: ${max_tokens} > ${most}, which is the maximum allowed number of output tokens for ${model}`
  return { status: 400, message }
}

function event(data: { readonly type: string; readonly [field: string]: unknown }): Buffer {
  return Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
}

function render(answer: Answer<MessagesRequest>): Rendered {
  const sign = createSigner(answer.body, answer.admission.dropped)
  let index = -1
  let block = ''
  const parts = answer.fragments.map((fragment) => {
    const delta = (data: object) => event({ type: 'content_block_delta', index, delta: data })
    if (fragment.first) {
      index++
      block = ''
    }
    block += fragment.text
    return Buffer.concat([
      ...(fragment.first ? [event({ type: 'content_block_start', index, content_block: emptyBlock(fragment) })] : []),
      delta(deltaOf(fragment)),
      ...(fragment.last && fragment.kind === 'reasoning'
        ? [delta({ type: 'signature_delta', signature: sign(block) })]
        : []),
      ...(fragment.last ? [event({ type: 'content_block_stop', index })] : []),
    ])
  })
  const { usage, ...end } = endOf(answer)
  return {
    head: [event({ type: 'message_start', message: messageOf(answer) })],
    parts,
    tail: [event({ type: 'message_delta', delta: end, usage: usage ?? { output_tokens: 0 } })],
    done: [event({ type: 'message_stop' })],
  }
}

function emptyBlock({ kind, call }: Fragment): object {
  if (kind === 'reasoning') return { type: 'thinking', thinking: '', signature: '' }
  return kind === 'text' ? { type: 'text', text: '' } : { type: 'tool_use', id: call!.id, name: call!.name, input: {} }
}

function deltaOf({ kind, text }: Fragment): object {
  if (kind === 'reasoning') return { type: 'thinking_delta', thinking: text }
  return kind === 'text' ? { type: 'text_delta', text } : { type: 'input_json_delta', partial_json: text }
}

/** Content blocks of a response that is not streamed. */
function contentOf({ body, admission, fragments }: Answer<MessagesRequest>): object[] {
  const sign = createSigner(body, admission.dropped)
  const blocks: Fragment[] = []
  for (const fragment of fragments) {
    if (fragment.first) blocks.push(fragment)
    else blocks.push({ ...fragment, text: blocks.pop()!.text + fragment.text })
  }
  return blocks.map(({ kind, text, call }) => {
    if (kind === 'text') return { type: 'text', text }
    if (kind === 'reasoning') return { type: 'thinking', thinking: text, signature: sign(text) }
    return { type: 'tool_use', id: call!.id, name: call!.name, input: JSON.parse(text) }
  })
}

function messageOf(answer: Answer<MessagesRequest>): object {
  const { body, admission } = answer
  const { output_tokens: _, ...prompt } = usageOf(answer) ?? { output_tokens: 0 }
  const dropped = admission.dropped ?? []
  return {
    id: 'msg_fake',
    type: 'message',
    role: 'assistant',
    content: [],
    model: body.model,
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: 1, ...prompt },
    ...(dropped.length > 0 && {
      input_transformations: dropped.map((path) => ({ type: 'thinking_dropped', path, reason: 'prefix_mismatch' })),
    }),
  }
}

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
}

function endOf(answer: Answer<MessagesRequest>) {
  return { stop_reason: STOP_REASONS[answer.finish] ?? answer.finish, stop_sequence: null, usage: usageOf(answer) }
}

function usageOf({ usage, admission, fragments }: Answer<MessagesRequest>) {
  if (usage === false) return undefined
  const {
    input,
    output,
    cachedInput = 0,
    cacheWrite = 0,
    reasoning = 0,
  } = usage ?? countedUsage(admission.billed!, fragments)
  return {
    input_tokens: input - cachedInput - cacheWrite,
    cache_read_input_tokens: cachedInput,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: output,
    output_tokens_details: { thinking_tokens: reasoning },
  }
}
