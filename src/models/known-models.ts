/**
 * What the two model names of the specification stand for where nothing is configured but a provider's key lies in the
 * environment: the provider's fast model and its strong one, as of November 2026.
 *
 * A price stands here only where it is one price: most providers charge more for long prompts, which one number can't
 * say, and a cost that is too low is worse than none. An operator who wants costs sets `price` in errand.yaml.
 */
import type { ModelConfig } from '../config.ts'
import type { Price } from '../domain/usage.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** The specification's names: fast and cheaper, and for complex reasoning. */
export const SPEC_NAMES = ['svc-3.5-flash', 'svc-3.1-pro'] as const
export type SpecName = (typeof SPEC_NAMES)[number]

export interface KnownProvider {
  readonly provider: Exclude<ModelConfig['provider'], 'openai-compatible' | 'demo'>
  /** The variables that may hold its key, in order. */
  readonly keys: readonly string[]
  /** In the order of SPEC_NAMES. */
  models(env: Env): Readonly<Record<SpecName, { readonly model: string; readonly price?: Price }>>
}

/** In the order in which they are chosen where several keys are there. */
export const KNOWN_PROVIDERS: readonly KnownProvider[] = [
  {
    provider: 'anthropic',
    keys: ['ANTHROPIC_API_KEY'],
    models: () => ({
      'svc-3.5-flash': { model: 'claude-haiku-5-5' },
      'svc-3.1-pro': { model: 'claude-opus-5-5', price: { input: 4, output: 20, cachedInput: 0.4, cacheWrite: 5 } },
    }),
  },
  {
    provider: 'google',
    keys: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    models: () => ({
      'svc-3.5-flash': { model: 'gemini-3.8-flash' },
      'svc-3.1-pro': { model: 'gemini-3.1-pro-preview' },
    }),
  },
  {
    provider: 'openai',
    keys: ['OPENAI_API_KEY'],
    models: () => ({
      'svc-3.5-flash': { model: 'gpt-6-luna' },
      'svc-3.1-pro': { model: 'gpt-6-sol' },
    }),
  },
  {
    provider: 'bedrock',
    keys: ['AWS_BEARER_TOKEN_BEDROCK'],
    models: (env) => {
      const profile = inferenceProfile(bedrockRegion(env))
      return {
        'svc-3.5-flash': { model: `${profile}.anthropic.claude-haiku-4-5-20251001-v1:0` },
        'svc-3.1-pro': { model: `${profile}.anthropic.claude-opus-5-5` },
      }
    },
  },
]

/** The variable that holds a provider's key where its configuration names none. Bedrock has its own rules. */
export function defaultKeyEnv(provider: ModelConfig['provider'], env: Env): string | undefined {
  const keys = KNOWN_PROVIDERS.find((known) => known.provider === provider)?.keys ?? []
  return keys.find((key) => env[key]) ?? keys[0]
}

export function bedrockRegion(env: Env): string {
  return env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1'
}

/** Newer models are called through a profile that spans the region's continent, or the world. */
function inferenceProfile(region: string): string {
  if (region.startsWith('us-')) return 'us'
  return region.startsWith('eu-') ? 'eu' : 'global'
}
