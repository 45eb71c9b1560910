/**
 * A provider's status, error body or error event → ModelFailure. All clients share it.
 *
 * Callers read the messages: a provider's own words are quoted, truncated, and stripped of secrets.
 */
import { readOverflow } from './context-window.ts'
import { isJsonObject, stringIn } from './json.ts'
import type { ModelFailure } from './port.ts'

type FailureKind = ModelFailure['kind']

/** Whether the same call may succeed later. */
const RETRYABLE: Readonly<Record<FailureKind, boolean>> = {
  refused: false,
  overloaded: true,
  unreachable: true,
  stalled: true,
  truncated: true,
  malformed: false,
  aborted: false,
}

const QUOTE_CHARS = 500

export function failed(kind: FailureKind, message: string): ModelFailure {
  return { kind, message, retryable: RETRYABLE[kind] }
}

export const ABORTED: ModelFailure = failed('aborted', 'The model call was cancelled.')

export function stalled(idleTimeoutMs: number): ModelFailure {
  return failed('stalled', `The model provider sent nothing for ${idleTimeoutMs / 1000} seconds.`)
}

export const TRUNCATED: ModelFailure = failed(
  'truncated',
  "The model provider's stream ended before the answer was complete.",
)

/** `code` is a system error code (`ECONNREFUSED`). System messages are not used: they contain the address. */
export function unreachable(code: string | undefined): ModelFailure {
  return failed('unreachable', `The model provider could not be reached${code ? ` (${code})` : ''}.`)
}

/** A provider's error, from any of the common formats. */
export interface ProviderError {
  readonly message?: string
  /** `code` or `type`: a word, not a status. */
  readonly code?: string
  readonly status?: number
}

/** Details that the failure messages of one model need. */
export interface Wording {
  /** Name of the environment variable that holds the key. */
  readonly apiKeyEnv?: string
  /** Texts that must not be shown: the key, a password. */
  readonly secrets: readonly string[]
}

/** Reads `{error: {message, code}}`, `{error: "…"}`, `{message}`, `{detail}`, Google's list of one, or plain text. */
export function parseErrorBody(text: string): ProviderError {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.startsWith('<')) return {}
  try {
    return toProviderError(JSON.parse(trimmed))
  } catch {
    return { message: trimmed }
  }
}

export function toProviderError(value: unknown): ProviderError {
  if (typeof value === 'string') return { message: value }
  if (Array.isArray(value)) return toProviderError(value[0])
  if (typeof value !== 'object' || value === null) return {}
  const error = value as Record<string, unknown>
  if (error.error !== undefined && error.error !== null && error.message === undefined) {
    return toProviderError(error.error)
  }
  const messages = [upstreamMessage(error), error.message, error.detail, listed(error)]
  const message = messages.find((text) => typeof text === 'string' && text !== '')
  const words = [error.code, error.type, error.status].filter((word) => typeof word === 'string')
  const status = [error.code, error.status, error.statusCode].find((n) => Number.isInteger(n) && (n as number) >= 400)
  return {
    message: message as string | undefined,
    code: words.length > 0 ? words.join(' ') : undefined,
    status: status as number | undefined,
  }
}

/** Reads the error of the provider behind OpenRouter, whose own message is only "Provider returned error". */
function upstreamMessage({ metadata }: Record<string, unknown>): string | undefined {
  return isJsonObject(metadata) ? parseErrorBody(stringIn(metadata, 'raw')).message : undefined
}

/** Reads FastAPI's list of invalid fields, which Mistral puts into `message`: `{detail: [{loc: ['body', 'x'], msg}]}`. */
function listed({ message, detail }: Record<string, unknown>): string | undefined {
  const list = isJsonObject(message) ? message.detail : detail
  if (!Array.isArray(list)) return undefined
  return list
    .filter(isJsonObject)
    .map((problem) =>
      [...(Array.isArray(problem.loc) ? [problem.loc.join('.')] : []), stringIn(problem, 'msg')].join(': '),
    )
    .join('; ')
}

/** A provider's answer with an error status. */
export function answeredWith(status: number, error: ProviderError, wording: Wording): ModelFailure {
  const quoted = quote(error.message, wording)
  if (status === 401 || status === 403) {
    const key = wording.apiKeyEnv
      ? `The key is read from the environment variable ${wording.apiKeyEnv}.`
      : 'No key is configured for it (apiKeyEnv).'
    return failed('refused', `The model provider refused the key (status ${status})${quoted}. ${key}`)
  }
  if (status >= 300 && status < 400) {
    return failed(
      'refused',
      `The model provider answered with a redirect (status ${status}). Check the model's baseUrl.`,
    )
  }
  const kind = worthRetrying(status) && !outOfCredit(error) ? 'overloaded' : 'refused'
  return refusedOr(kind, `The model provider answered with status ${status}${quoted}.`, error)
}

/** An error event in a stream. Without a known code it counts as a temporary problem of the provider. */
export function streamError(error: ProviderError, wording: Wording): ModelFailure {
  if (error.status !== undefined) return answeredWith(error.status, error, wording)
  const final = /invalid_request|authentication|permission|not_found|context_length|content_policy/i.test(
    error.code ?? '',
  )
  const kind = final || outOfCredit(error) ? 'refused' : 'overloaded'
  return refusedOr(kind, `The model provider reported an error${quote(error.message ?? error.code, wording)}.`, error)
}

function refusedOr(kind: FailureKind, message: string, error: ProviderError): ModelFailure {
  const tooLong = kind === 'refused' ? readOverflow(error) : undefined
  return { ...failed(kind, message), ...(tooLong && { tooLong }) }
}

/** A response that violates the protocol. `what` completes "The model provider's answer …". */
export function malformed(what: string): ModelFailure {
  return failed('malformed', `The model provider's answer ${what}. Check the model's baseUrl.`)
}

function worthRetrying(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500
}

/** Providers report missing credit with status 429, but waiting does not help. */
function outOfCredit(error: ProviderError): boolean {
  return /insufficient_quota|billing/i.test(error.code ?? '')
}

/** `: "…"`, or an empty string if there is no message. */
export function quote(message: string | undefined, wording: Wording): string {
  if (!message) return ''
  let text = message.replace(/[\s\u0000-\u001f]+/g, ' ').trim()
  for (const secret of wording.secrets) if (secret !== '') text = text.replaceAll(secret, '[secret]')
  return `: "${text.length > QUOTE_CHARS ? `${text.slice(0, QUOTE_CHARS)}…` : text}"`
}
