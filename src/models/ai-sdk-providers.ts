/**
 * The AI SDK's provider packages, each loaded when its first call is made. Keys and addresses are always passed: left
 * out, the packages would look into the environment themselves. A model is never given to the SDK as a string, for that
 * goes to a hosted gateway.
 */
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'

export type AiSdkProvider = 'anthropic' | 'google' | 'openai' | 'bedrock'

export interface AwsCredentials {
  readonly region: string
  /** Undefined: `apiKey` is a Bedrock bearer token. */
  readonly keys?: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string }
}

export interface ProviderSettings {
  readonly provider: AiSdkProvider
  readonly model: string
  readonly apiKey?: string
  readonly aws?: AwsCredentials
  readonly baseUrl?: string
}

export async function loadLanguageModel(
  settings: ProviderSettings,
  fetch: typeof globalThis.fetch,
): Promise<LanguageModelV4> {
  const { provider, model, apiKey = '' } = settings
  switch (provider) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ apiKey, baseURL: settings.baseUrl ?? 'https://api.anthropic.com/v1', fetch })(model)
    }
    case 'google': {
      const { createGoogle } = await import('@ai-sdk/google')
      const baseURL = settings.baseUrl ?? 'https://generativelanguage.googleapis.com/v1beta'
      return createGoogle({ apiKey, baseURL, fetch })(model)
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ apiKey, baseURL: settings.baseUrl ?? 'https://api.openai.com/v1', fetch }).responses(model)
    }
    case 'bedrock': {
      const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
      const { region = '', keys } = settings.aws ?? {}
      const baseURL = settings.baseUrl ?? bedrockUrl(region)
      // An empty bearer token chooses the signature, whatever the environment holds.
      return createAmazonBedrock({ region, baseURL, fetch, apiKey: keys ? '' : apiKey, ...keys })(model)
    }
  }
}

function bedrockUrl(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

/**
 * What each provider needs to be told for agents: thoughts shown where the model has them, and nothing kept at OpenAI
 * (its reasoning comes back encrypted instead). Schemas are a caller's own, so strict modes, which allow but a part of
 * JSON Schema, are off.
 */
export function providerOptionsFor({ provider, model }: ProviderSettings): SharedV4ProviderOptions {
  switch (provider) {
    case 'anthropic':
      return thinksAdaptively(model) ? { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } } : {}
    case 'google':
      return /gemini-(2\.5|[3-9])|-latest/.test(model) ? { google: { thinkingConfig: { includeThoughts: true } } } : {}
    case 'openai':
      return { openai: { store: false, strictJsonSchema: false } }
    case 'bedrock':
      return {}
  }
}

function thinksAdaptively(model: string): boolean {
  return /claude-(opus-4-[6-9]|sonnet-4-6|(opus|sonnet|haiku|fable)-[5-9])/.test(model)
}

/** The ends of what may be asked for: OpenAI refuses less than 16, Gemini more than 65,536. */
export function clampLimit(provider: AiSdkProvider, maxOutputTokens: number): number {
  if (provider === 'openai') return Math.max(16, maxOutputTokens)
  if (provider === 'google') return Math.min(65_536, maxOutputTokens)
  return maxOutputTokens
}
