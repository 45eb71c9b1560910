import type { SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { Level, ParameterSupport } from '../parameters.ts'
import { aiSdkProvider } from './ai-sdk-provider.ts'
import { claudeParameters, thinkingBudget, thinksAdaptively } from './claude.ts'
import type { Env } from './provider.ts'

/** Amazon Bedrock, with a bearer token or with AWS signing keys. */
export const bedrock = aiSdkProvider({
  name: 'bedrock',
  telemetryName: 'aws.bedrock',
  keyEnvs: ['AWS_BEARER_TOKEN_BEDROCK'],
  otherCredentials: {
    variables: 'AWS_ACCESS_KEY_ID with its secret',
    secrets: (env) => {
      const keys = signingKeys(env)
      return keys && [keys.secretAccessKey, keys.sessionToken ?? '']
    },
  },
  baseUrlEnv: 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
  specModels: (env) => {
    const profile = inferenceProfile(regionOf(env))
    return {
      'svc-3.5-flash': { model: `${profile}.anthropic.claude-haiku-4-5-20251001-v1:0`, vision: true },
      'svc-3.1-pro': { model: `${profile}.anthropic.claude-opus-5-5`, vision: true },
    }
  },
  async load({ model, apiKey, baseUrl, env }, fetch) {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
    const region = regionOf(env)
    const keys = apiKey ? undefined : signingKeys(env)
    // An empty bearer token selects signing, even if the environment has a token.
    return createAmazonBedrock({ region, baseURL: baseUrl ?? addressOf(region), fetch, apiKey: apiKey ?? '', ...keys })(
      model,
    )
  },
  parameters: bedrockParameters,
  reasoningBudget: thinkingBudget,
  callOptions: ({ model, parameters: { effort }, budget }): SharedV4ProviderOptions => {
    if (!effort) return {}
    if (!isClaude(model)) return { bedrock: effort === 'none' ? {} : encodeEffort(model, effort) }
    if (effort === 'none') return { bedrock: { additionalModelRequestFields: { thinking: { type: 'disabled' } } } }
    if (!thinksAdaptively(model)) {
      return budget === undefined ? {} : { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: budget } } }
    }
    return { bedrock: { reasoningConfig: { type: 'adaptive', maxReasoningEffort: effort, display: 'summarized' } } }
  },
  cacheBreakpoint: (model) => (cachesPrompts(model) ? { bedrock: { cachePoint: { type: 'default' } } } : undefined),
  errors: { overflow: [/input is too long/i] },
})

function isClaude(model: string): boolean {
  return model.includes('anthropic')
}

/** Efforts of models other than Claude by "Inference request parameters" in the Bedrock user guide. */
function bedrockParameters(model: string): ParameterSupport {
  if (isClaude(model)) return claudeParameters(model)
  const usual = ['low', 'medium', 'high'] as const
  if (/openai\.gpt-oss/.test(model)) return { levels: usual, maxTemperature: 1 }
  if (/openai\./.test(model)) return { levels: usual }
  // With high effort, Nova accepts no limit on output tokens.
  if (/amazon\.nova-2/.test(model)) return { levels: ['none', 'low', 'medium'], maxTemperature: 1 }
  return { levels: undefined, maxTemperature: 1 }
}

function encodeEffort(model: string, effort: Level) {
  return { reasoningConfig: { ...(/nova/.test(model) && { type: 'enabled' }), maxReasoningEffort: effort } }
}

/** Bedrock refuses a cache point for any other model ("Prompt caching" in its user guide). */
function cachesPrompts(model: string): boolean {
  return /claude-(3-7|3-5-haiku|(opus|sonnet|haiku|fable)-[4-9])|amazon\.nova/.test(model)
}

function signingKeys(env: Env) {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = env
  return accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, sessionToken } : undefined
}

function regionOf(env: Env): string {
  return env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1'
}

/** Newer models are called by an inference profile, which spans the region's continent or the world. */
function inferenceProfile(region: string): string {
  if (region.startsWith('us-')) return 'us'
  return region.startsWith('eu-') ? 'eu' : 'global'
}

function addressOf(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}
