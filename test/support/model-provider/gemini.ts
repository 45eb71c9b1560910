/**
 * Google's Gemini API (`streamGenerateContent`) as server-sent events. Calls carry a thought signature that must come
 * back unchanged, responses are paired with calls, prompts are cached automatically, and limits apply. Refusals have the
 * API's messages. Arguments of a call arrive whole.
 */
import { contextRefusal } from './context-window.ts'
import { createPromptCache } from './prompt-cache.ts'
import { cutAtCharacters } from './script.ts'
import { createSeals, type Seals } from './seals.ts'
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
import { CHARACTERS_PER_TOKEN, countedUsage, jsonBlock, sumTokens } from './token-counts.ts'

export interface Part {
  readonly text?: string
  readonly thought?: boolean
  readonly thoughtSignature?: string
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args?: object }
  readonly functionResponse?: { readonly id?: string; readonly name: string; readonly response: object }
  readonly [field: string]: unknown
}

export interface GeminiRequest {
  readonly contents: readonly { readonly role: 'user' | 'model'; readonly parts: readonly Part[] }[]
  readonly systemInstruction?: { readonly parts: readonly Part[] }
  // biome-ignore lint/suspicious/noExplicitAny: tests read fields of requests freely
  readonly tools?: any
  readonly generationConfig?: { readonly maxOutputTokens?: number; readonly [field: string]: unknown }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly [field: string]: any
}

export interface GeminiOptions {
  /** The model's name in the provider's API. Default `gemini-3.8-flash`. */
  readonly model?: string
  /** Maximum tokens of the prompt. Default 1,048,576. */
  readonly window?: number
  /** If true, a signature is refused behind an edited prefix. The API does not check that. Default false. */
  readonly bound?: boolean
  /** If true, an answer does not stop at `maxOutputTokens`. */
  readonly ignoresLimit?: boolean
  /** Seed of the signatures. Default 0. */
  readonly seed?: number
  /** Clock of the prompt cache, in milliseconds. */
  readonly now?: () => number
}

export type FakeGemini = ModelProvider<GeminiRequest>

export function openFakeGemini(options: GeminiOptions & ServeOptions = {}): Promise<FakeGemini> {
  return serveDialect(gemini(options), options)
}

const MIN_CACHE_TOKENS = 1_024
/** Accepted by the API for calls that another model made. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

function gemini(options: GeminiOptions): Dialect<GeminiRequest> {
  const { model = 'gemini-3.8-flash', window = 1_048_576, bound = false, seed = 0 } = options
  const cache = createPromptCache({ now: options.now, automatic: true, minTokens: MIN_CACHE_TOKENS })
  const seals = createSeals(seed, bound)

  function admit(body: GeminiRequest): Admission | Refusal {
    const blocks = [body.systemInstruction ?? {}, body.tools ?? [], ...body.contents].map(jsonBlock)
    const refusal =
      pairingRefusal(body) ?? signatureRefusal(body, seals) ?? contextRefusal('gemini', sumTokens(blocks), 0, window)
    return refusal ?? { billed: cache.bill(blocks) }
  }

  return {
    model: { provider: 'google', model, apiKeyEnv: 'FAKE_GEMINI_KEY' },
    env: { FAKE_GEMINI_KEY: 'fake' },
    base: '/v1beta',
    stateless: false,
    serves: (path) => path.endsWith(':streamGenerateContent'),
    messages: ({ contents }) =>
      contents.map(({ role, parts }) => ({
        role: role === 'model' ? 'assistant' : parts.some(({ functionResponse }) => functionResponse) ? 'tool' : 'user',
        text: parts.map(({ text = '' }) => text).join('\n'),
      })),
    admit,
    cut: ({ generationConfig: { maxOutputTokens: limit } = {} }, fragments) =>
      options.ignoresLimit || limit === undefined
        ? undefined
        : cutAtCharacters(fragments, limit * CHARACTERS_PER_TOKEN),
    callId: (turn, index) => `call_${turn}_${index}`,
    render: (answer) => render(answer, seals),
    whole: (answer) => ({
      candidates: [{ content: { role: 'model', parts: partsOf(answer, seals).flat() }, ...endOf(answer) }],
      usageMetadata: usageOf(answer),
    }),
    errorBody: ({ status, message, code }) => ({ error: { code: status, message, status: code ?? STATUSES[status] } }),
    errorEvent: ({ message, code = 'UNAVAILABLE' }) => event({ error: { code: 503, message, status: code } }),
  }
}

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

function pairingRefusal({ contents }: GeminiRequest): Refusal | undefined {
  const refuse = (message: string): Refusal => ({ status: 400, message })
  for (const [i, { role, parts }] of contents.entries()) {
    const calls = parts.filter(({ functionCall }) => functionCall).length
    const responses = (contents[i + 1]?.parts ?? []).filter(({ functionResponse }) => functionResponse).length
    if (calls > 0 && calls !== responses)
      return refuse(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    const answers = role === 'user' && parts.some(({ functionResponse }) => functionResponse)
    if (answers && !contents[i - 1]?.parts.some(({ functionCall }) => functionCall))
      return refuse('Please ensure that function response turn comes immediately after a function call turn.')
  }
  return undefined
}

/** The first call of each model turn needs its signature. */
function signatureRefusal(body: GeminiRequest, seals: Seals): Refusal | undefined {
  for (const [i, { role, parts }] of body.contents.entries()) {
    const first = role === 'model' ? parts.find(({ functionCall }) => functionCall) : undefined
    for (const part of parts) {
      const { thoughtSignature: signature } = part
      if (part === first && signature === undefined) {
        const message = `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${part.functionCall!.name}\` , position ${i + 1}.`
        return { status: 400, message }
      }
      if (signature === undefined || signature === NO_SIGNATURE) continue
      const problem = seals.check(signature, contentOf(part), prefixOf(body, i))
      if (problem) return { status: 400, message: `Corrupted thought signature: ${problem}.` }
    }
  }
  return undefined
}

/** The signed content of a part. */
function contentOf({ functionCall }: Part): unknown {
  return functionCall ? [functionCall.name, functionCall.args ?? {}] : 'text'
}

function prefixOf({ systemInstruction, tools, contents }: GeminiRequest, count = contents.length): unknown {
  return [systemInstruction, tools, contents.slice(0, count)]
}

function event(data: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
}

function render(answer: Answer<GeminiRequest>, seals: Seals): Rendered {
  const chunk = (parts: readonly Part[], more: object = {}) =>
    event({ candidates: [{ content: { role: 'model', parts }, index: 0, ...more }] })
  const end = { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, index: 0, ...endOf(answer) }] }
  return {
    head: [],
    // A fragment within a call's arguments sends nothing yet.
    parts: partsOf(answer, seals).map((parts) => (parts.length > 0 ? chunk(parts) : Buffer.from(':\n\n'))),
    tail: [],
    done: [event({ ...end, usageMetadata: usageOf(answer) })],
  }
}

/** The parts of each fragment. A call that the limit cut off is not sent. */
function partsOf({ body, fragments, finish }: Answer<GeminiRequest>, seals: Seals): Part[][] {
  let args = ''
  return fragments.map((fragment, i) => {
    const { kind, text, first, last, call } = fragment
    if (kind === 'reasoning') return [{ text, thought: true }]
    if (kind === 'text') return [{ text }]
    args = first ? text : args + text
    if (!last || (finish === 'length' && i === fragments.length - 1)) return []
    const functionCall = { ...(call!.id !== undefined && { id: call!.id }), name: call!.name, args: JSON.parse(args) }
    const isFirstCall = call!.index === 0
    return [
      {
        functionCall,
        ...(isFirstCall && { thoughtSignature: seals.seal(contentOf({ functionCall }), prefixOf(body)) }),
      },
    ]
  })
}

const FINISH_REASONS: Readonly<Record<string, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

function endOf({ finish }: Answer<GeminiRequest>): object {
  return { finishReason: FINISH_REASONS[finish] ?? finish }
}

function usageOf({ usage, admission: { billed }, fragments }: Answer<GeminiRequest>): object | undefined {
  if (usage === false) return undefined
  const { input, output, cachedInput = 0, reasoning = 0 } = usage ?? countedUsage(billed!, fragments)
  return {
    promptTokenCount: input,
    ...(cachedInput > 0 && { cachedContentTokenCount: cachedInput }),
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    totalTokenCount: input + output,
  }
}
