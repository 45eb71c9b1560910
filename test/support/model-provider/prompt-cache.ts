/**
 * Billing of prompts by their longest common prefix with an earlier one, within a lifetime. Anthropic's way stores a
 * prompt at its `cache_control` breakpoints and looks back 20 blocks from each; the automatic way (OpenAI and most
 * compatible servers) stores every prefix.
 */
import { createHash } from 'node:crypto'
import type { Billed } from './serve.ts'

export interface PromptBlock {
  /** Content that must be the same for a hit, without cache markers. */
  readonly text: string
  readonly tokens: number
  /** Lifetime in milliseconds of the prefix that ends with this block. */
  readonly breakpoint?: number
}

export interface PromptCacheOptions {
  /** Milliseconds. */
  readonly now?: () => number
  readonly automatic?: boolean
  /** A shorter prefix is not stored. */
  readonly minTokens: number
}

const LOOK_BACK = 20
const AUTOMATIC_LIFETIME_MS = 5 * 60_000

export function createPromptCache({ now = Date.now, automatic = false, minTokens }: PromptCacheOptions) {
  const entries = new Map<string, { readonly lifetime: number; expiresAt: number }>()
  const store = (prefix: string, lifetime: number) => entries.set(prefix, { lifetime, expiresAt: now() + lifetime })
  /** A hit begins the entry's lifetime again. */
  const hit = (prefix: string) => {
    const entry = entries.get(prefix)
    if (!entry || entry.expiresAt <= now()) return false
    store(prefix, entry.lifetime)
    return true
  }

  return {
    /** Prompts with another `key` share nothing. */
    bill(prompt: readonly PromptBlock[], key = ''): Billed {
      const blocks = automatic ? prompt.map((block) => ({ ...block, breakpoint: AUTOMATIC_LIFETIME_MS })) : prompt
      const prefixes = hashPrefixes(blocks, key)
      const tokensTo = sums(blocks)
      const breakpoints = blocks.flatMap((block, i) => (block.breakpoint === undefined ? [] : [i]))
      const reach = automatic ? Number.POSITIVE_INFINITY : LOOK_BACK
      const read = lastHit(breakpoints, reach, (i) => hit(prefixes[i]!))
      const stored = breakpoints.filter((i) => tokensTo[i]! >= minTokens)
      for (const i of stored) store(prefixes[i]!, blocks[i]!.breakpoint!)
      const cacheRead = read === undefined ? 0 : tokensTo[read]!
      const cacheWrite = automatic ? 0 : Math.max(0, (tokensTo[stored.at(-1) ?? -1] ?? 0) - cacheRead)
      return { uncached: (tokensTo.at(-1) ?? 0) - cacheRead - cacheWrite, cacheRead, cacheWrite }
    },
  }
}

/** The last block within reach of a breakpoint whose prefix is stored. */
function lastHit(breakpoints: readonly number[], reach: number, isHit: (i: number) => boolean): number | undefined {
  for (const from of breakpoints.toReversed()) {
    for (let i = from; i >= 0 && i > from - reach; i--) if (isHit(i)) return i
  }
  return undefined
}

function hashPrefixes(blocks: readonly PromptBlock[], key: string): string[] {
  let prefix = key
  return blocks.map(({ text }) => {
    prefix = createHash('sha256').update(prefix).update('\0').update(text).digest('base64')
    return prefix
  })
}

function sums(blocks: readonly PromptBlock[]): number[] {
  let sum = 0
  return blocks.map(({ tokens }) => {
    sum += tokens
    return sum
  })
}
