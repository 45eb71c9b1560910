/**
 * How the limit on output tokens is put to a provider, learnt from its refusals: a budget is for a whole run, and may be
 * more than one model can do in one call. Then the provider's own limit holds, and the engine keeps the budget.
 */
import { type ProviderError, refusedLimit } from './failures.ts'

export type LimitField = 'max_tokens' | 'max_completion_tokens'

export interface TokenLimit {
  /** The field to send for this budget; undefined: none. */
  fieldFor(maxOutputTokens: number): LimitField | undefined
  /** Whether a refusal taught something, so that the same request is worth another go with what `fieldFor` says now. */
  learn(error: ProviderError, sent: LimitField | undefined, maxOutputTokens: number): boolean
}

export function createTokenLimit(): TokenLimit {
  let field: LimitField = 'max_tokens'
  /** The smallest limit that was refused. */
  let refusedAt = Number.POSITIVE_INFINITY

  return {
    fieldFor: (maxOutputTokens) => (maxOutputTokens < refusedAt ? field : undefined),
    learn: (error, sent, maxOutputTokens) => {
      const refused = sent && refusedLimit(error)
      if (!refused) return false
      if (refused === 'rename' && sent === 'max_tokens') field = 'max_completion_tokens'
      else refusedAt = Math.min(refusedAt, maxOutputTokens)
      return true
    },
  }
}
