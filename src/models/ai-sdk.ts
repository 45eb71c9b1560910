/**
 * Client for providers with an AI SDK package. It calls `doStream` and retries by retry.ts; the SDK's own retries and its
 * `streamText` are not used.
 *
 * Each attempt has its own fetch, which watches the bytes: pings reset the idle timeout even if no part arrives.
 */
import type { LanguageModelV4, LanguageModelV4StreamPart, SharedV4Warning } from '@ai-sdk/provider'
import { fetch as undiciFetch } from 'undici'
import { addTokens } from '../domain/usage.ts'
import { createPartReader, type PartReader } from './ai-sdk-answer.ts'
import { type CallSettings, encodeCall } from './ai-sdk-prompt.ts'
import {
  ABORTED,
  answeredWith,
  failed,
  parseErrorBody,
  quote,
  stalled,
  streamError,
  TRUNCATED,
  toProviderError,
  unreachable,
  type Wording,
} from './failures.ts'
import { isJsonObject } from './json.ts'
import { createParameterFilter, type FittedParameters, noticeOfPackage } from './parameters.ts'
import type { Model, ModelDelta, ModelFailure, ModelOutcome, ModelRequest } from './port.ts'
import type { AiSdkProvider, Connection } from './providers/ai-sdk-provider.ts'
import type { ClientOptions } from './providers/provider.ts'
import { mergeBody, type RequestExtras } from './request-extras.ts'
import {
  callWithRetries,
  DEFAULT_IDLE_TIMEOUT_MS,
  DEFAULT_MAX_TRIES,
  REAL_TIMING,
  readRetryAfter,
  type Timing,
} from './retry.ts'
import { createTokenLimit, type LimitedOutcome } from './token-limit.ts'

export interface AiSdkOptions extends ClientOptions, Connection {
  readonly provider: AiSdkProvider
  /** Name of the model in the catalogue, for messages. */
  readonly name: string
  /** `off`: no cache breakpoints and no cache key. Default `auto`. */
  readonly cache?: 'auto' | 'off'
  /** Name of the key's environment variable, for messages. */
  readonly apiKeyEnv?: string
}

interface Settings {
  readonly options: AiSdkOptions
  readonly wording: Wording
  readonly timing: Timing
  readonly idleTimeoutMs: number
}

interface SentSettings {
  /** Undefined: no limit is sent. */
  readonly maxOutputTokens: number | undefined
  readonly parameters: FittedParameters
}

type TryOutcome = LimitedOutcome & { readonly paused?: boolean }

export function createAiSdkModel(options: AiSdkOptions): Model {
  const { provider, apiKey = '', apiKeyEnv, env, maxTries = DEFAULT_MAX_TRIES, timing = REAL_TIMING, onRetry } = options
  const secrets = [apiKey, ...(provider.otherCredentials?.secrets(env) ?? []), ...(options.secrets ?? [])]
  const wording: Wording = { apiKeyEnv, secrets }
  const settings = { options, wording, timing, idleTimeoutMs: options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS }
  const limit = createTokenLimit()
  const filter = createParameterFilter(options.name, provider.parameters(options.model))

  /** Makes one call. `paused`: the provider interrupted the turn and wants to continue it. */
  async function callOnce(request: ModelRequest, onDelta: (delta: ModelDelta) => void, signal: AbortSignal) {
    let paused = false
    const outcome = await callWithRetries(
      async (speak) => {
        const most = Math.min(request.maxOutputTokens, options.maxOutputTokens ?? Number.POSITIVE_INFINITY)
        const wanted = provider.clampOutputTokens?.(most) ?? most
        const outcome = await filter.call(request.parameters, speak, (parameters) =>
          limit.call(wanted, (sent) =>
            attempt(settings, request, { maxOutputTokens: sent?.tokens, parameters }, speak, signal),
          ),
        )
        paused = outcome.paused === true
        return outcome
      },
      { maxTries, timing, onRetry },
      onDelta,
      signal,
    )
    return { outcome, paused }
  }

  return {
    async call(request, onDelta, signal) {
      let { outcome, paused } = await callOnce(request, onDelta, signal)
      for (let goes = 0; paused && outcome.ok && goes < MAX_GOES; goes++) {
        const sofar = outcome
        const left = request.maxOutputTokens - (sofar.tokens?.output ?? 0)
        if (left < 1) return { ...sofar, finish: 'length' }
        const messages = [...request.messages, sofar.message]
        const next = await callOnce({ ...request, messages, maxOutputTokens: left }, onDelta, signal)
        outcome = joined(sofar, next.outcome)
        paused = next.paused
      }
      return outcome
    },
  }
}

/** Maximum number of continuations of a paused turn. */
const MAX_GOES = 8

/** Joins the two parts of a continued turn. */
function joined(first: ModelOutcome & { ok: true }, second: ModelOutcome): ModelOutcome {
  const tokens =
    second.tokens && first.tokens ? addTokens(first.tokens, second.tokens) : (second.tokens ?? first.tokens)
  if (!second.ok) return { ...second, tokens }
  const content = [...first.message.content, ...second.message.content]
  return { ...second, message: { role: 'assistant', content }, tokens }
}

/** Makes one attempt. Never rejects. Closes the connection if the answer was not read to its end. */
async function attempt(
  { options, wording, timing, idleTimeoutMs }: Settings,
  request: ModelRequest,
  sent: SentSettings,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
): Promise<TryOutcome> {
  const end = new AbortController()
  const idle = setTimeout(() => end.abort(), idleTimeoutMs)
  const onAbort = (): void => end.abort()
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  const { provider } = options
  const parts = createPartReader(provider, onDelta, wording)
  try {
    const model = await provider.load(
      options,
      watchedFetch(options, () => idle.refresh()),
    )
    const call = encodeCall(request, settingsOf(options, request, sent))
    const { stream } = await model.doStream({ ...call, abortSignal: end.signal })
    const error = await readParts(stream, (part) => {
      if (part.type === 'stream-start') reportWarnings(options.name, part.warnings, onDelta)
      else parts.take(part)
    })
    return error === undefined
      ? { ...parts.outcome(), paused: parts.paused() }
      : explain(error, wording, parts, timing.now())
  } catch (error) {
    if (signal.aborted) return { ok: false, failure: ABORTED, tokens: parts.tokens() }
    if (end.signal.aborted) return { ok: false, failure: stalled(idleTimeoutMs), tokens: parts.tokens() }
    return explain(error, wording, parts, timing.now())
  } finally {
    clearTimeout(idle)
    signal.removeEventListener('abort', onAbort)
    end.abort()
  }
}

/** The options of one call. */
function settingsOf(
  { provider, model, cache: caching }: AiSdkOptions,
  request: ModelRequest,
  { maxOutputTokens, parameters }: SentSettings,
): CallSettings {
  const cache = caching === 'off' ? undefined : request.cache
  const budget = provider.reasoningBudget?.(model, parameters.effort, maxOutputTokens)
  return {
    providerOptions: provider.callOptions?.({ model, cache, parameters, budget }) ?? {},
    breakpoint: cache && provider.cacheBreakpoint?.(model, cache),
    maxOutputTokens: maxOutputTokens && maxOutputTokens - (budget ?? 0),
    temperature: parameters.temperature,
    provider,
  }
}

type PartStream = Awaited<ReturnType<LanguageModelV4['doStream']>>['stream']

/** Returns the error of the first error part. Undefined if the stream ended without one. */
async function readParts(stream: PartStream, take: (part: LanguageModelV4StreamPart) => void): Promise<unknown> {
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return undefined
    if (value.type === 'error') return value.error ?? {}
    take(value)
  }
}

function reportWarnings(
  model: string,
  warnings: readonly SharedV4Warning[],
  onDelta: (delta: ModelDelta) => void,
): void {
  for (const warning of warnings) {
    const notice = warning.type === 'unsupported' ? noticeOfPackage(model, warning.feature) : undefined
    if (notice) onDelta(notice)
  }
}

const MAX_ERROR_BYTES = 64 * 1024

/** undici's fetch with the given dispatcher. Calls `onBytes` for each chunk. Reads an error body up to 64 KiB. */
function watchedFetch(options: AiSdkOptions, onBytes: () => void): typeof globalThis.fetch {
  const { dispatcher } = options
  const watched = async (url: string, init: RequestInit): Promise<Response> => {
    const { body, ok, status, statusText, headers } = await undiciFetch(url, {
      ...withExtras(init, options),
      dispatcher,
      redirect: 'manual',
    })
    onBytes()
    let bytes = 0
    const watch = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        onBytes()
        bytes += chunk.length
        controller.enqueue(chunk)
        if (!ok && bytes > MAX_ERROR_BYTES) controller.terminate()
      },
    })
    const watchedBody = (body as ReadableStream<Uint8Array> | null)?.pipeThrough(watch) ?? null
    return new Response(watchedBody, { status, statusText, headers: [...headers] })
  }
  return watched as typeof globalThis.fetch
}

/** The request with the operator's headers and body fields. */
function withExtras(init: RequestInit, { headers, extraBody }: RequestExtras): object {
  const changed = { ...init }
  if (headers) changed.headers = { ...Object.fromEntries(new Headers(init.headers)), ...lowerCased(headers) }
  if (extraBody && typeof init.body === 'string')
    changed.body = JSON.stringify(mergeBody(JSON.parse(init.body), extraBody))
  return changed
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Converts an error of the SDK, thrown or in the stream. It is identified by its fields, not by its class. */
function explain(error: unknown, wording: Wording, parts: PartReader, now: number): TryOutcome {
  const tokens = parts.tokens()
  const { statusCode, responseBody, responseHeaders } = isJsonObject(error) ? error : {}
  // An answer that cannot be parsed has status 200.
  if (typeof statusCode !== 'number' || statusCode < 300) {
    const failure = explainPlain(error, wording)
    const cutOff = failure.kind === 'unreachable' && parts.begun()
    return { ok: false, failure: cutOff ? TRUNCATED : failure, tokens }
  }
  const inBody = typeof responseBody === 'string' ? parseErrorBody(responseBody) : {}
  const providerError = inBody.message ? inBody : toProviderError({ message: messageOf(error) })
  const headers = isJsonObject(responseHeaders) ? (responseHeaders as Record<string, string>) : {}
  const failure = answeredWith(statusCode, providerError, wording)
  return { ok: false, failure, tokens, retryAfterMs: readRetryAfter(headers, now), providerError }
}

function explainPlain(error: unknown, wording: Wording): ModelFailure {
  if (!(error instanceof Error)) return streamError(toProviderError(error), wording)
  const chain = causes(error)
  const code = chain.map((cause) => (cause as { code?: unknown }).code).find((found) => typeof found === 'string')
  if (code) return unreachable(code as string)
  if (chain.some(({ name }) => /JSONParse|TypeValidation|EmptyResponseBody|InvalidResponse|NoContent/.test(name))) {
    return failed('malformed', "The model provider's answer is not what its protocol says. Check the model's baseUrl.")
  }
  if (chain.some(({ message }) => message === 'fetch failed' || message === 'terminated')) return unreachable(undefined)
  return failed('refused', `The model could not be called${quote(error.message, wording)}.`)
}

function causes(error: Error): Error[] {
  const chain: Error[] = []
  for (let cause: unknown = error; cause instanceof Error && !chain.includes(cause); cause = cause.cause) {
    chain.push(cause)
  }
  return chain
}

function messageOf(error: unknown): string {
  return isJsonObject(error) && typeof error.message === 'string' ? error.message : ''
}
