/**
 * Token counts, prices and the usage of a run. The stored form, the API and the documentation use the same field names.
 */

import { withoutEnd } from './trim.ts'

/** Tokens of one model call as its provider counted them, or an estimate if the call was cut off. */
export interface TokenCount {
  /** Tokens in, including those that were read from or written to the provider's prompt cache. */
  readonly input: number
  /** Tokens out, reasoning included. */
  readonly output: number
  /** Part of `input`: read from the cache. */
  readonly cachedInput: number
  /** Part of `input`: written to the cache. Undefined where the provider reports none. */
  readonly cacheWrite?: number
  readonly reasoning: number
}

export interface Cost {
  /** Decimal string, as many digits as the price needs: `"0.0123"`. */
  readonly amount: string
  readonly currency: 'USD'
}

export interface Usage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
  /** Wall time from acceptance to the end, milliseconds. */
  readonly duration_ms: number
  /** Part of `input_tokens`: read from the provider's prompt cache. */
  readonly cached_input_tokens: number
  /** Part of `input_tokens`: written to the provider's prompt cache. */
  readonly cache_write_tokens: number
  /** Part of `output_tokens`. */
  readonly reasoning_tokens: number
  readonly model_calls: number
  readonly tool_calls: number
  /** Wall time during which a sandbox existed, in milliseconds. */
  readonly sandbox_ms: number
  readonly cost?: Cost
}

/** US dollars per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  /** Input that is read from the provider's prompt cache. Default: `input`. */
  readonly cachedInput?: number
  /** Input that is written to it. Default: `input`. */
  readonly cacheWrite?: number
}

export const NO_TOKENS: TokenCount = { input: 0, output: 0, cachedInput: 0, reasoning: 0 }

export function addTokens(a: TokenCount, b: TokenCount): TokenCount {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cachedInput: a.cachedInput + b.cachedInput,
    ...cacheWrite((a.cacheWrite ?? 0) + (b.cacheWrite ?? 0)),
    reasoning: a.reasoning + b.reasoning,
  }
}

/** The field of a count, absent if nothing was written. */
export function cacheWrite(tokens: number | undefined): Pick<TokenCount, 'cacheWrite'> {
  return tokens ? { cacheWrite: tokens } : {}
}

/** US dollars for `tokens` at `price`. */
export function costOf(tokens: TokenCount, price: Price): number {
  const read = Math.min(tokens.cachedInput, tokens.input)
  const written = Math.min(tokens.cacheWrite ?? 0, tokens.input - read)
  const input =
    (tokens.input - read - written) * price.input +
    read * (price.cachedInput ?? price.input) +
    written * (price.cacheWrite ?? price.input)
  return (input + tokens.output * price.output) / 1e6
}

/** A plain decimal without exponent or trailing zeros, to a billionth of a dollar. */
export function formatAmount(dollars: number): string {
  const text = withoutEnd(withoutEnd(dollars.toFixed(9), '0'), '.')
  return text === '' ? '0' : text
}

/** Formats billionths of a dollar like `formatAmount`. */
export function formatNanos(nanos: bigint): string {
  const text = nanos.toString().padStart(10, '0')
  return withoutEnd(withoutEnd(`${text.slice(0, -9)}.${text.slice(-9)}`, '0'), '.')
}

/** Parses a plain decimal with at most nine fractional digits into billionths of a dollar. */
export function toNanos(dollars: string): bigint {
  const [whole, rest = ''] = dollars.split('.')
  return BigInt(whole + rest.padEnd(9, '0'))
}

/**
 * Estimates the tokens of a text: four UTF-16 units a token, rounded up. Used for calls that were cut off before their
 * provider reported usage, so that a cancelled run is not free.
 */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4)
}
