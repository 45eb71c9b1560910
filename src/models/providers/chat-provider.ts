/**
 * Additions to the record of a provider that Errand calls with the chat completions API, and how the provider's dialect
 * differs from the form that most servers accept.
 */
import type { ModelConfig } from '../../config.ts'
import type { JsonObject } from '../json.ts'
import type { Level, ParameterSupport } from '../parameters.ts'
import type { LimitField } from '../token-limit.ts'
import { apiKeyMissing, readApiKey } from './api-key.ts'
import type { OpenContext, OpenModel, Provider } from './provider.ts'

/** Differences from the form that most servers accept. An empty dialect has none. */
export interface ChatDialect {
  /** Field of the limit on output tokens. Default `max_tokens`. A refusal can change it later. */
  readonly limitField?: LimitField
  /** True if the provider reports usage in every stream and refuses `stream_options`. */
  readonly omitsStreamOptions?: boolean
  /** True if a response format is described in the prompt only, because the provider or most of its models refuse the field. */
  readonly omitsResponseFormat?: boolean
  /** Converts the id of a tool call to one that the provider accepts. The same id always gives the same result. */
  readonly encodeCallId?: (callId: string) => string
  /** Encodes a PDF, given as a data URL. Default: a `file` part as in OpenAI's API. */
  readonly encodeDocument?: (dataUrl: string) => JsonObject
  /** True if the provider refuses a user message directly after a tool result. */
  readonly separatesToolResults?: boolean
  /** Body fields that route the requests of one conversation to one cache. */
  readonly cacheFields?: (key: string) => JsonObject
  /** Headers that route the requests of one conversation to one cache. */
  readonly cacheHeaders?: (key: string) => Readonly<Record<string, string>>
  /** Whether prompts of this model are cached only up to breakpoints (`cache_control`). */
  readonly cachesAtBreakpoints?: (model: string) => boolean
  /** True if `reasoning_details` are stored and sent back unchanged to the model that wrote them. */
  readonly returnsReasoningDetails?: boolean
  /** Body fields for an effort. Default: `reasoning_effort`. */
  readonly encodeEffort?: (level: Level, model: string) => JsonObject
}

type Traits<Name extends string> = Omit<Provider<Name>, 'requires' | 'open'> & {
  /** Default of `baseUrl` in the configuration. */
  readonly baseUrl: string
  readonly dialect: ChatDialect
  /** The parameters of a request that a model accepts. */
  readonly parameters: (model: string) => ParameterSupport
  /** Whether reasoning is sent back as `reasoning_content`. `sendReasoning` in the configuration overrides it. Default: no. */
  readonly sendsReasoning?: (model: string) => boolean
}

/** Completes the record of a provider with its own address, key and dialect. */
export function chatProvider<Name extends string>(traits: Traits<Name>): Provider<Name> {
  const { baseUrl, dialect, parameters, sendsReasoning, ...provider } = traits
  return {
    requires: ['model'],
    ...provider,
    open: (config, context) => openModel(traits, config, context),
  }
}

function openModel(
  { baseUrl: publicUrl, dialect, parameters, sendsReasoning, keyEnvs }: Traits<string>,
  config: ModelConfig,
  { name, env, client }: OpenContext,
): OpenModel | string {
  const { model, cache, baseUrl = publicUrl, apiKeyEnv = keyEnvs[0] } = config
  const apiKey = readApiKey(env, apiKeyEnv)
  if (!apiKey) return apiKeyMissing(name, apiKeyEnv)
  const sendReasoning = config.sendReasoning ?? sendsReasoning?.(model) ?? false
  return async () => {
    const { createOpenAiCompatible } = await import('../openai-compatible.ts')
    const support = parameters(model)
    const options = { ...client, name, model, baseUrl, apiKey, apiKeyEnv, sendReasoning, dialect, support, cache }
    return createOpenAiCompatible(options)
  }
}
