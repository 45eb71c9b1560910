/**
 * Cache breakpoints: marks at the messages where a provider ends a prefix that it caches. Sources: "Prompt caching" in Anthropic's
 * documentation (at most 4 breakpoints, a look-back of 20 blocks) and in the Amazon Bedrock user guide.
 */
import type { LanguageModelV4Message, SharedV4ProviderOptions } from '@ai-sdk/provider'

/**
 * Indexes of the messages at which three prefixes end:
 *
 * - system prompt and tools, which other conversations of the same agent share;
 * - the request that the last answer replied to, which is in the cache, however many blocks came after it (a wide
 *   turn of parallel calls exceeds the provider's look-back);
 * - this request, for the next one.
 */
export function prefixEnds(prompt: readonly { readonly role?: unknown }[]): ReadonlySet<number> {
  const system = prompt.findLastIndex(({ role }) => role === 'system')
  const lastAnswer = prompt.findLastIndex(({ role }) => role === 'assistant')
  return new Set([system, lastAnswer - 1, prompt.length - 1])
}

/** Marks the ends of the three prefixes with `options`. */
export function markPrefixes(
  prompt: readonly LanguageModelV4Message[],
  options: SharedV4ProviderOptions,
): LanguageModelV4Message[] {
  const ends = prefixEnds(prompt)
  return prompt.map((message, i) =>
    ends.has(i) ? { ...message, providerOptions: { ...message.providerOptions, ...options } } : message,
  )
}
