/**
 * The limit on output tokens that a model call sends. A budget is for a whole run and may be more than the model can
 * write in one call, and servers differ in the field's name. What a model takes is learned from its refusals, but only
 * after the same request succeeded the other way. A prompt that is too long teaches nothing: it changes that call alone.
 */
import { readOverflow } from './context-window.ts'
import type { ProviderError } from './failures.ts'
import { ERROR_DIALECTS } from './providers/registry.ts'
import type { AttemptOutcome } from './retry.ts'

export type LimitField = 'max_tokens' | 'max_completion_tokens'

export interface SentLimit {
  readonly field: LimitField
  readonly tokens: number
}

/** An error answer keeps what the provider said, so that a refused limit can be distinguished from a refused request. */
export type LimitedOutcome = AttemptOutcome & { readonly providerError?: ProviderError }

export interface TokenLimit {
  /**
   * Calls `attempt` with the limit to send (undefined: none), and again with another one while the provider refuses the
   * limit. `maxOutputTokens` is the most that is sent.
   */
  call<Outcome extends LimitedOutcome>(
    maxOutputTokens: number,
    attempt: (limit: SentLimit | undefined) => Promise<Outcome>,
  ): Promise<Outcome>
}

/** What a model is known to take. */
interface Known {
  /** Undefined: the server takes no limit. */
  readonly field: LimitField | undefined
  /** The most tokens that may be asked for. */
  readonly most: number
  /** The smallest limit that was refused without a number that it may be; it and larger ones are left out. */
  readonly refusedFrom: number
}

/** Refusals of one call that are answered by another limit: each kind once. */
const MAX_REFUSALS = 4

export function createTokenLimit(): TokenLimit {
  let known: Known = {
    field: 'max_tokens',
    most: Number.POSITIVE_INFINITY,
    refusedFrom: Number.POSITIVE_INFINITY,
  }

  return {
    async call(maxOutputTokens, attempt) {
      let lessons: Partial<Known> = {}
      let limit = limitFor(known, maxOutputTokens)
      for (let refusals = 0; ; refusals++) {
        const outcome = await attempt(limit)
        if (outcome.ok) {
          known = { ...known, ...lessons }
          return outcome
        }
        if (!limit || refusals === MAX_REFUSALS || outcome.failure.kind !== 'refused') return outcome
        const refusal = readRefusal(outcome.providerError ?? {}, limit)
        if (!refusal) return outcome
        if ('onlyNow' in refusal) limit = refusal.onlyNow
        else {
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

/** A smaller rest of the window is not worth a call. */
const LEAST_ROOM = 256

/** What a refusal says about the limit that was sent; undefined if it is about something else. */
function readRefusal(
  error: ProviderError,
  limit: SentLimit,
): Partial<Known> | { readonly onlyNow: SentLimit | undefined } | undefined {
  const message = error.message ?? ''
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
    // The limit may be what makes it too long: the server then knows best what is left.
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
