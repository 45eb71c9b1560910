/**
 * Record of one model provider. Each provider is one record in a file of its own, listed in registry.ts.
 * The configuration reads every record when the server starts, so a record imports no SDK: `open` loads it.
 */
import type { Dispatcher } from 'undici'
import type { ModelConfig } from '../../config.ts'
import type { Model } from '../port.ts'
import type { RequestExtras } from '../request-extras.ts'
import type { OnRetry, Timing } from '../retry.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** The model names of the specification: one fast and cheap, one for complex reasoning. */
export const SPEC_NAMES = ['svc-3.5-flash', 'svc-3.1-pro'] as const
export type SpecModels = Readonly<Record<(typeof SPEC_NAMES)[number], Pick<ModelConfig, 'model' | 'price' | 'vision'>>>

export interface Provider<Name extends string = string> {
  /** The value of `models.*.provider`. */
  readonly name: Name
  /** Fields that a `models` entry of this provider must have. */
  readonly requires: readonly ('model' | 'baseUrl')[]
  /** Whether a `models` entry may set `sendReasoning`. */
  readonly takesSendReasoning?: boolean
  /** Environment variables that may hold the API key, in order of preference. */
  readonly keyEnvs: readonly string[]
  /** Models for the specification's names if only a key is set. Undefined: a key does not select this provider. */
  readonly specModels?: (env: Env) => SpecModels
  /** Model servers to look for on loopback if neither models nor keys are configured, in order of preference. */
  readonly localServers?: readonly LocalServer[]
  /** Whether all its current models accept images and PDFs. `vision` and `documents` in the configuration override it. */
  readonly acceptsMedia?: boolean
  /** Whether this model can search the web on the provider's side. */
  readonly canSearch?: (model: string) => boolean
  /** Wording of its errors. Every dialect is tried on every error, because gateways pass errors on. */
  readonly errors?: ErrorDialect
  /** `gen_ai.provider.name` in traces. Default: `name`. */
  readonly telemetryName?: string
  /**
   * Returns how to open a configured model, or a sentence that says why it cannot be opened. Undefined: the provider is
   * built in, and the catalogue has its entry.
   */
  readonly open?: (config: ModelConfig, context: OpenContext) => OpenModel | string
}

export type OpenModel = () => Promise<Model>

export interface OpenContext {
  /** The model's name in the catalogue, for messages. */
  readonly name: string
  readonly env: Env
  readonly client: ClientOptions
}

/** Options of every client that calls a provider. */
export interface ClientOptions extends RequestExtras {
  /** Shared by all clients; its owner closes it. */
  readonly dispatcher: Dispatcher
  /** Maximum output tokens of one call. */
  readonly maxOutputTokens?: number
  readonly maxTries?: number
  readonly idleTimeoutMs?: number
  readonly timing?: Timing
  readonly onRetry?: OnRetry
}

export interface LocalServer {
  readonly name: string
  readonly origin: string
  /** `owned_by` of its models. Undefined: a model list on this port identifies the server. */
  readonly ownedBy?: string
}

export interface ErrorDialect {
  /** Error codes of a prompt that exceeds the context window. */
  readonly overflowCodes?: RegExp
  /** Error messages of a prompt that exceeds the context window. */
  readonly overflow?: readonly RegExp[]
  /** Token counts in such a message, as the groups `prompt` and `window`. */
  readonly overflowTokens?: readonly RegExp[]
  /** Refusals of a limit on output tokens; group 1 is the highest limit that the model accepts. */
  readonly outputLimit?: readonly RegExp[]
}
