/** Token counts of prompts and answers. Four characters are a token, and an image is 1,000. */
import type { PromptBlock } from './prompt-cache.ts'
import type { Fragment, UsageReply } from './script.ts'
import type { Billed } from './serve.ts'

export const CHARACTERS_PER_TOKEN = 4
const IMAGE_TOKENS = 1_000

/** A part of a JSON request as a block of its prompt. */
export function jsonBlock(part: unknown): PromptBlock {
  let images = 0
  const withoutMedia = (key: string, value: unknown) => {
    if (typeof value !== 'string' || !(value.startsWith('data:') || key === 'data')) return value
    images++
    return ''
  }
  const text = JSON.stringify(part)
  const counted = JSON.stringify(part, withoutMedia)
  return { text, tokens: Math.ceil(counted.length / CHARACTERS_PER_TOKEN) + images * IMAGE_TOKENS }
}

export function sumTokens(blocks: readonly PromptBlock[]): number {
  return blocks.reduce((sum, { tokens }) => sum + tokens, 0)
}

/** Usage of an answer to a billed prompt. */
export function countedUsage(billed: Billed, fragments: readonly Fragment[]): UsageReply {
  const tokens = (kinds: readonly Fragment['kind'][]) =>
    Math.ceil(
      fragments.reduce((sum, { kind, text }) => (kinds.includes(kind) ? sum + text.length : sum), 0) /
        CHARACTERS_PER_TOKEN,
    )
  return {
    input: billed.uncached + billed.cacheRead + billed.cacheWrite,
    output: tokens(['reasoning', 'text', 'args']),
    cachedInput: billed.cacheRead,
    cacheWrite: billed.cacheWrite,
    reasoning: tokens(['reasoning']),
  }
}
