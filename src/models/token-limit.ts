/**
 * The limit on output tokens in a model call. A run's budget may be more than the model can write in one call, and servers
 * use different field names. Both are learned from refusals, once the same request succeeded with another limit. A prompt
 * that is too long changes the limit of that call only.
 */
import { MAX_ERROR_CHARACTERS, readOverflow } from './context-window.ts'
import type { ProviderError } from './failures.ts'
import type { Overflow } from './port.ts'
import { ERROR_DIALECTS } from './providers/registry.ts'
import type { AttemptOutcome } from './retry.ts'

export type LimitField = 'max_tokens' | 'max_completion_tokens'

export interface SentLimit {
  readonly field: LimitField
  readonly tokens: number
}

/** Keeps the provider's error, so that a refused limit can be distinguished from a refused request. */
export type LimitedOutcome = AttemptOutcome & { readonly providerError?: ProviderError }

export interface TokenLimit {
  /**
   * Calls `attempt` with the limit to send (undefined: none), and again with another limit while the provider refuses it.
   * The limit is at most `maxOutputTokens`.
   */
  call<Outcome extends LimitedOutcome>(
    maxOutputTokens: number,
    attempt: (limit: SentLimit | undefined) => Promise<Outcome>,
  ): Promise<Outcome>
}

/** Limits that a model is known to accept. */
interface Known {
  /** Undefined: the server accepts no limit. */
  readonly field: LimitField | undefined
  /** Highest accepted limit. */
  readonly most: number
  /** Lowest limit that was refused without naming an allowed one. Limits from here on are not sent. */
  readonly refusedFrom: number
}

/** Refusals of one call after which another limit is tried: each kind once. */
const MAX_REFUSALS = 4

/** `field` is the field to send until a refusal names another. */
export function createTokenLimit(field: LimitField = 'max_tokens'): TokenLimit {
  let known: Known = {
    field,
    most: Number.POSITIVE_INFINITY,
    refusedFrom: Number.POSITIVE_INFINITY,
  }

  return {
    async call(maxOutputTokens, attempt) {
      let lessons: Partial<Known> = {}
      let limit = limitFor(known, maxOutputTokens)
      let overflow: Overflow | undefined
      for (let refusals = 0; ; refusals++) {
        const outcome = await attempt(limit)
        if (outcome.ok) {
          known = { ...known, ...lessons }
          return overflow ? { ...outcome, overflow } : outcome
        }
        if (!limit || refusals === MAX_REFUSALS || outcome.failure.kind !== 'refused') return outcome
        const refusal = readRefusal(outcome.providerError ?? {}, limit)
        if (!refusal) return outcome
        if ('onlyNow' in refusal) {
          limit = refusal.onlyNow
          overflow = readOverflow(outcome.providerError ?? {})
        } else {
          lessons = { ...lessons, ...refusal }
          limit = limitFor({ ...known, ...lessons }, maxOutputTokens)
        }
      }
    },
  }
}

function limitFor({ field, most, refusedFrom }: Known, maxOutputTokens: number): SentLimit | undefined {
  const tokens = Math.min(maxOutputTokens, most)
  return field && tokens < refusedFrom ? { field, tokens } : undefined
}

/** Minimum room in the window, in tokens, that is worth a call. */
const LEAST_ROOM = 256

/** Reads from a refusal what the model accepts. Undefined if the refusal is about something else. */
function readRefusal(
  error: ProviderError,
  limit: SentLimit,
): Partial<Known> | { readonly onlyNow: SentLimit | undefined } | undefined {
  const message = (error.message ?? '').slice(0, MAX_ERROR_CHARACTERS)
  if (/use\W+max_completion_tokens/i.test(message)) {
    return limit.field === 'max_tokens' ? { field: 'max_completion_tokens' } : { field: undefined }
  }
  const overflow = readOverflow(error)
  if (overflow) {
    const { prompt, window } = overflow
    if (prompt !== undefined && window !== undefined) {
      const room = window - prompt
      return room >= LEAST_ROOM && room < limit.tokens ? { onlyNow: { ...limit, tokens: room } } : undefined
    }
    // The prompt plus the limit may be too long. Without a limit, the server uses the room that is left.
    return /requested \d|completion|max_\w{0,20}tokens/i.test(message) ? { onlyNow: undefined } : undefined
  }
  if (!/max_?(?:completion_?|new_?|output_?)?tokens/i.test(message)) return undefined
  const most = mostIn(message)
  if (most !== undefined && most >= 1 && most < limit.tokens) return { most }
  const unknown = /not supported|unsupported|unrecognized|unknown|unexpected|not permitted/i.test(message)
  return unknown ? { field: undefined } : { refusedFrom: limit.tokens }
}

const OUTPUT_LIMITS = ERROR_DIALECTS.flatMap(({ outputLimit }) => outputLimit ?? [])

/** The most that the model can write. */
function mostIn(message: string): number | undefined {
  const found = OUTPUT_LIMITS.map((limit) => limit.exec(message)).find(Boolean)
  return found ? Number(found[1]) : undefined
}
