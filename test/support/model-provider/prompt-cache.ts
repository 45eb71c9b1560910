/**
 * Bills prompts by their longest common prefix with an earlier one, within a lifetime. In Anthropic's mode, a prompt is
 * stored at its `cache_control` breakpoints, and a lookup goes back 20 blocks from each. In automatic mode (OpenAI and
 * most compatible servers), every prefix is stored.
 */
import { createHash } from 'node:crypto'
import type { Billed } from './serve.ts'

export interface PromptBlock {
  /** Content that must be equal for a cache hit, without cache markers. */
  readonly text: string
  readonly tokens: number
  /** If set, the prefix that ends with this block is stored, for this lifetime in milliseconds. */
  readonly breakpoint?: number
}

export interface PromptCacheOptions {
  /** Current time in milliseconds. */
  readonly now?: () => number
  readonly automatic?: boolean
  /** Shorter prefixes are not stored. */
  readonly minTokens: number
}

const LOOK_BACK = 20
const AUTOMATIC_LIFETIME_MS = 5 * 60_000

export function createPromptCache({ now = Date.now, automatic = false, minTokens }: PromptCacheOptions) {
  const entries = new Map<string, { readonly lifetime: number; expiresAt: number }>()
  const store = (prefix: string, lifetime: number) => entries.set(prefix, { lifetime, expiresAt: now() + lifetime })
  /** Returns whether the prefix is stored. A hit restarts its lifetime. */
  const hit = (prefix: string) => {
    const entry = entries.get(prefix)
    if (!entry || entry.expiresAt <= now()) return false
    store(prefix, entry.lifetime)
    return true
  }

  return {
    /** Bills a prompt. Prompts with different keys share no prefixes. */
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

/** Index of the last block with a stored prefix, at most `reach` blocks back from a breakpoint. */
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
