/**
 * OpenAI's Responses API as server-sent events, without storage (`store: false`). Reasoning is encrypted and must come
 * back unchanged, calls are paired with their outputs, prompts are cached automatically, and limits apply. Refusals have
 * the API's messages. Unlike the API, it also refuses reasoning behind an edited prefix, unless `bound` is false.
 */
import { contextRefusal } from './context-window.ts'
import { createPromptCache } from './prompt-cache.ts'
import { renderResponse, wholeResponse } from './responses-answer.ts'
import { cutAtCharacters, type ScriptMessage } from './script.ts'
import { createSeals, type Seals } from './seals.ts'
import {
  type Admission,
  type Dialect,
  type ModelProvider,
  type Refusal,
  type ServeOptions,
  serveDialect,
} from './serve.ts'
import { CHARACTERS_PER_TOKEN, jsonBlock, sumTokens } from './token-counts.ts'

export interface ResponsesRequest {
  readonly model: string
  readonly input: readonly InputItem[]
  readonly instructions?: string
  readonly tools?: readonly { readonly name: string; readonly [field: string]: unknown }[]
  readonly max_output_tokens?: number
  readonly prompt_cache_key?: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read fields of requests freely
  readonly [field: string]: any
}

/** A message (`role`), or another item (`type`). */
export interface InputItem {
  readonly type?: string
  readonly role?: string
  readonly content?: string | readonly { readonly type: string; readonly text?: string }[]
  readonly call_id?: string
  readonly encrypted_content?: string
  readonly summary?: readonly { readonly text: string }[]
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly [field: string]: any
}

export interface ResponsesOptions {
  /** The model's name in the provider's API. Default `gpt-6-sol`. */
  readonly model?: string
  /** Maximum tokens of the prompt. Default 400,000. */
  readonly window?: number
  /** Refuses reasoning behind an edited prefix. Default true. */
  readonly bound?: boolean
  /** If true, an answer does not stop at `max_output_tokens`. */
  readonly ignoresLimit?: boolean
  /** Seed of the encrypted reasoning. Default 0. */
  readonly seed?: number
  /** Clock of the prompt cache, in milliseconds. */
  readonly now?: () => number
}

export type FakeOpenAi = ModelProvider<ResponsesRequest>

export function openFakeOpenAi(options: ResponsesOptions & ServeOptions = {}): Promise<FakeOpenAi> {
  return serveDialect(openAiResponses(options), options)
}

const MIN_OUTPUT_TOKENS = 16
const MIN_CACHE_TOKENS = 1_024

function openAiResponses(options: ResponsesOptions): Dialect<ResponsesRequest> {
  const { model = 'gpt-6-sol', window = 400_000, bound = true, seed = 0 } = options
  const cache = createPromptCache({ now: options.now, automatic: true, minTokens: MIN_CACHE_TOKENS })
  const seals = createSeals(seed, bound)

  function admit(body: ResponsesRequest): Admission | Refusal {
    const blocks = [body.instructions ?? '', body.tools ?? [], ...body.input].map(jsonBlock)
    const refusal =
      limitRefusal(body) ??
      pairingRefusal(body) ??
      reasoningRefusal(body, seals) ??
      contextRefusal('responses', sumTokens(blocks), 0, window)
    return refusal ?? { billed: cache.bill(blocks, body.prompt_cache_key) }
  }

  return {
    model: { provider: 'openai', model, apiKeyEnv: 'FAKE_OPENAI_KEY' },
    env: { FAKE_OPENAI_KEY: 'sk-fake' },
    base: '/v1',
    stateless: false,
    serves: (path) => path === '/v1/responses',
    messages: scriptMessages,
    admit,
    cut: ({ max_output_tokens: limit }, fragments) =>
      options.ignoresLimit || limit === undefined
        ? undefined
        : cutAtCharacters(fragments, limit * CHARACTERS_PER_TOKEN),
    callId: (turn, index) => `call_${turn}_${index}`,
    render: (answer) => renderResponse(answer, (text) => seals.seal(text, prefixOf(answer.body))),
    whole: (answer) => wholeResponse(answer, (text) => seals.seal(text, prefixOf(answer.body))),
    errorBody: ({ status, message, code }) => ({
      error: { message, type: ERROR_TYPES[status] ?? 'server_error', param: null, code: code ?? null },
    }),
    errorEvent: ({ message, code = 'server_error' }) =>
      Buffer.from(
        `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 0, code, message, param: null })}\n\n`,
      ),
  }
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  429: 'rate_limit_error',
}

/** Reasoning, texts and calls of one turn are one message. */
function scriptMessages({ input }: ResponsesRequest): ScriptMessage[] {
  const messages: ScriptMessage[] = []
  for (const item of input) {
    const role = item.type === 'function_call_output' ? 'tool' : (item.role ?? 'assistant')
    const text = textOf(item)
    const last = messages.at(-1)
    if (role === 'assistant' && last?.role === role) messages[messages.length - 1] = { role, text: last.text + text }
    else messages.push({ role, text })
  }
  return messages
}

function textOf({ content = '', output }: InputItem): string {
  const value = output ?? content
  return typeof value === 'string' ? value : value.map(({ text = '' }: { text?: string }) => text).join('\n')
}

function prefixOf({ model, instructions, tools, input }: ResponsesRequest, items = input.length): unknown {
  return [model, instructions, tools, input.slice(0, items)]
}

function limitRefusal({ max_output_tokens: limit = MIN_OUTPUT_TOKENS }: ResponsesRequest): Refusal | undefined {
  if (limit >= MIN_OUTPUT_TOKENS) return undefined
  const message = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${MIN_OUTPUT_TOKENS}, but got ${limit} instead.`
  return { status: 400, message, code: 'integer_below_min_value' }
}

function pairingRefusal({ input }: ResponsesRequest): Refusal | undefined {
  const open = new Set<string>()
  for (const { type, role, call_id: id = '' } of input) {
    if (type === 'function_call') open.add(id)
    else if (type === 'function_call_output' && !open.delete(id)) {
      return { status: 400, message: `No tool call found for function call output with call_id ${id}.` }
    } else if (role === 'user' && open.size > 0) break
  }
  const [missing] = open
  return missing === undefined
    ? undefined
    : { status: 400, message: `No tool output found for function call ${missing}.` }
}

function reasoningRefusal(body: ResponsesRequest, seals: Seals): Refusal | undefined {
  for (const [i, item] of body.input.entries()) {
    if (item.type !== 'reasoning') continue
    const text = (item.summary ?? []).map(({ text }) => text).join('')
    const problem = seals.check(item.encrypted_content, text, prefixOf(body, i))
    if (problem) {
      const message = `The encrypted content for item ${item.id} could not be verified. Reason: ${problem}.`
      return { status: 400, message, code: 'invalid_encrypted_content' }
    }
    const next = body.input[i + 1]
    if (!next || next.role === 'user' || next.type === 'function_call_output') {
      const message = `Item '${item.id}' of type 'reasoning' was provided without its required following item.`
      return { status: 400, message }
    }
  }
  return undefined
}
