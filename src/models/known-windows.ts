/**
 * Context windows of well-known hosted models, in tokens, from their providers' model pages. A number that is too small only
 * shortens conversations earlier; `models.*.contextWindow` overrides it. Models on one's own server are not listed: there the
 * server's configuration decides.
 */
import type { ModelConfig } from '../config.ts'

/** The first pattern that matches the provider's name of the model decides. */
const WINDOWS: readonly (readonly [name: RegExp, tokens: number])[] = [
  // https://docs.claude.com/en/docs/about-claude/models/overview. A million needs a beta header.
  [/claude-(?:[3-9]|opus|sonnet|haiku)/, 200_000],
  // https://platform.openai.com/docs/models. For gpt-5: the input, which is limited apart from the output.
  [/gpt-4\.1/, 1_047_576],
  [/gpt-4o|gpt-4-turbo/, 128_000],
  [/gpt-5/, 272_000],
  [/\bo(?:1|3|4-mini)\b/, 200_000],
  // https://ai.google.dev/gemini-api/docs/models
  [/gemini-(?:2|3|flash|pro)/, 1_048_576],
  // https://docs.mistral.ai/getting-started/models
  [/(?:mistral|magistral|devstral)-(?:large|medium|small)/, 128_000],
  // https://api-docs.deepseek.com/quick_start/pricing
  [/deepseek-(?:chat|reasoner)/, 128_000],
  // https://docs.x.ai/docs/models
  [/grok-(?:4|code)/, 256_000],
  [/grok-3/, 131_072],
]

/** Undefined for unknown models, and for models of one's own server. */
export function knownWindow({ provider, model }: ModelConfig): number | undefined {
  if (provider === 'openai-compatible') return undefined
  return WINDOWS.find(([name]) => name.test(model))?.[1]
}
