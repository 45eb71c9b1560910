/**
 * Additions to the record of a provider that Errand calls with its AI SDK package.
 *
 * Keys and addresses are always passed to the package: without them it would read the environment itself. A model is
 * never passed to the SDK as a string, which would send the call to a hosted gateway.
 */
import type {
  LanguageModelV4,
  LanguageModelV4ProviderTool,
  LanguageModelV4ToolResult,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import type { ModelConfig } from '../../config.ts'
import type { JsonObject } from '../json.ts'
import type { FittedParameters, ParameterSupport } from '../parameters.ts'
import type { PromptCaching } from '../port.ts'
import { apiKeyMissing, readApiKey } from './api-key.ts'
import type { thinkingBudget } from './claude.ts'
import type { Env, OpenContext, OpenModel, Provider } from './provider.ts'

/** `name` is also the key of the provider's metadata in messages. */
export interface AiSdkProvider<Name extends string = string> extends Provider<Name> {
  /** Imports the package and creates the model. */
  readonly load: (connection: Connection, fetch: typeof globalThis.fetch) => Promise<LanguageModelV4>
  /** Environment variable that overrides the provider's address. */
  readonly baseUrlEnv?: string
  /** For a provider without a public address: the variable that names the operator's resource. */
  readonly resource?: {
    readonly variable: string
    /** Undefined if it is no valid name. */
    readonly toBaseUrl: (name: string) => string | undefined
  }
  /** Credentials that can replace the API key. */
  readonly otherCredentials?: {
    /** Completes "The environment variable KEY (or …) is not set." */
    readonly variables: string
    /** Their secrets, never to be shown. Undefined if they are not set. */
    readonly secrets: (env: Env) => readonly string[] | undefined
  }
  /** The parameters of a request that a model accepts. */
  readonly parameters: (model: string) => ParameterSupport
  /** Provider options of a call. The temperature is sent without them. */
  readonly callOptions?: (call: ProviderCall) => SharedV4ProviderOptions
  /** Tokens of reasoning for a model that takes a budget. The package adds them to the limit on output tokens. */
  readonly reasoningBudget?: typeof thinkingBudget
  /**
   * Options of a message that ends a cached prefix. Undefined, or returns undefined: the provider caches by itself or not at
   * all.
   */
  readonly cacheBreakpoint?: (model: string, cache: PromptCaching) => SharedV4ProviderOptions | undefined
  /** The nearest limit on output tokens that the provider accepts. */
  readonly clampOutputTokens?: (tokens: number) => number
  /** True if the provider accepts reasoning without its own metadata. */
  readonly acceptsUnsignedReasoning?: boolean
  /** Finish reason of a turn that the provider interrupted and wants to continue. */
  readonly pauseReason?: string
  readonly search?: ProviderSearch
}

/** The parts of a call that become provider options. */
export interface ProviderCall {
  readonly model: string
  readonly cache: PromptCaching | undefined
  readonly parameters: FittedParameters
  /** From `reasoningBudget`. */
  readonly budget: number | undefined
}

export interface Connection {
  readonly model: string
  readonly apiKey?: string
  /** Default: the provider's public address. */
  readonly baseUrl?: string
  readonly env: Env
}

/** The provider's own web search, which runs on its side within a turn. */
export interface ProviderSearch {
  readonly tool: LanguageModelV4ProviderTool
  /** Reads the result of one search. Undefined: results hold nothing to show. */
  readonly readResult?: (result: LanguageModelV4ToolResult['result']) => SearchReport
  /** Reads what the whole answer is based on, from the metadata at its end. */
  readonly readSources?: (metadata: SharedV4ProviderMetadata | undefined) => SearchReport | undefined
}

export interface SearchReport {
  /** Arguments of the search that only the result reports. */
  readonly args?: JsonObject
  readonly pages: readonly SearchedPage[]
}

export interface SearchedPage {
  readonly title: string
  readonly url: string
  readonly date?: string
}

type Traits<Name extends string> = Omit<AiSdkProvider<Name>, 'requires' | 'canSearch' | 'open'> &
  Pick<Provider, 'canSearch'>

/** Completes the record of an AI SDK provider. */
export function aiSdkProvider<Name extends string>(traits: Traits<Name>): AiSdkProvider<Name> {
  const provider: AiSdkProvider<Name> = {
    requires: ['model'],
    ...traits,
    open: (config, context) => openModel(provider, config, context),
  }
  return provider
}

function openModel(
  provider: AiSdkProvider,
  config: ModelConfig,
  { name, env, client }: OpenContext,
): OpenModel | string {
  const { keyEnvs, otherCredentials, baseUrlEnv, resource } = provider
  const apiKeyEnv = config.apiKeyEnv ?? keyEnvs.find((key) => env[key]) ?? keyEnvs[0]
  const apiKey = readApiKey(env, apiKeyEnv)
  if (!apiKey && !otherCredentials?.secrets(env)) {
    return apiKeyMissing(name, otherCredentials ? `${apiKeyEnv} (or ${otherCredentials.variables})` : apiKeyEnv)
  }
  const baseUrl =
    config.baseUrl ?? ((baseUrlEnv && env[baseUrlEnv]) || resource?.toBaseUrl(env[resource.variable] ?? ''))
  if (resource && !baseUrl) {
    return `The model ${name} needs a baseUrl, or the name of its resource in the environment variable ${resource.variable}.`
  }
  if (client.extraBody && !apiKey) {
    return `extraBody of the model ${name} needs the key ${apiKeyEnv}: signed requests cannot be changed.`
  }
  const { model, cache } = config
  const options = { ...client, name, provider, model, cache, apiKey, apiKeyEnv, baseUrl, env }
  // Most installations use one provider; many use none of the SDK's.
  return async () => (await import('../ai-sdk.ts')).createAiSdkModel(options)
}
