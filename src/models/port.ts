/**
 * The port to models: one streamed call, independent of any provider's format.
 *
 * `call` never throws and never rejects: a failure is a value. It ends soon after `signal` aborts, with `{ ok: false }`
 * and its connection closed.
 */
import type { JsonSchema } from '../domain/interaction.ts'
import type { AssistantMessage, FinishReason, Message } from '../domain/message.ts'
import type { IgnoredParameter, ModelParameters } from '../domain/model-parameters.ts'
import type { Price, TokenCount } from '../domain/usage.ts'

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments object. */
  readonly parameters: JsonSchema
}

export interface ModelRequest {
  readonly system?: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** Output tokens left in the run's budget, at least 1. Reasoning counts. */
  readonly maxOutputTokens: number
  readonly responseFormat?: JsonSchema
  /** Whether the model may use its provider's own web search (`ModelDescription.searches`). */
  readonly search?: boolean
  /** Undefined: the provider's defaults. */
  readonly parameters?: ModelParameters
  /** Undefined: the request belongs to no conversation that could use the provider's prompt cache. */
  readonly cache?: PromptCaching
}

export interface PromptCaching {
  /** The same for all requests of one conversation. Some providers route requests with one key to one cache. */
  readonly key: string
  /** Requests may be far apart, because people decide on tool calls in between: an hour instead of minutes. */
  readonly long: boolean
}

/** Reported before the first fragment of an answer. */
export type CallNotice =
  /** A billed attempt failed and is retried. The outcome does not include its tokens. */
  | { readonly type: 'retried'; readonly tokens: TokenCount }
  /** A parameter of the request was not sent as asked. Reported again by later attempts and calls. */
  | ({ readonly type: 'ignored' } & IgnoredParameter)

/** A streamed fragment of the answer, or a notice. Tool calls are not streamed: they come with the outcome. */
export type ModelDelta =
  | CallNotice
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A new reasoning block begins: the next `reasoning` text is another step. Not sent before the first block. */
  | { readonly type: 'reasoning_block' }
  /** A tool that the provider ran, with its output. `late`: the text before it is already based on it. */
  | {
      readonly type: 'provider_tool'
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
      readonly output: string
      readonly durationMs: number
      readonly late?: boolean
    }

export type { FinishReason }

export interface ModelFailure {
  /** Description of the failure for callers, without the provider's address and key. */
  readonly message: string
  readonly retryable: boolean
  readonly kind:
    | 'refused' // an error that a retry does not fix (400, 401, 404)
    | 'overloaded' // 429 and 5xx, after all retries
    | 'unreachable' // no connection, after all retries
    | 'stalled' // the idle timeout fired
    | 'truncated' // the stream ended before the answer was complete
    | 'malformed' // the response violates the protocol
    | 'aborted' // `signal` aborted
  /** Set if the provider refused the prompt because it does not fit the model's context window. */
  readonly tooLong?: Overflow
}

/** Counts from a refusal because of the context window, in tokens, as far as the provider reports them. */
export interface Overflow {
  readonly prompt?: number
  readonly window?: number
}

export type ModelOutcome =
  | {
      readonly ok: true
      readonly message: AssistantMessage
      readonly finish: FinishReason
      /** Undefined if the provider reported none: the engine then estimates. */
      readonly tokens: TokenCount | undefined
      /** Set if the provider first refused the prompt with the output limit together: the answer had less room. */
      readonly overflow?: Overflow
    }
  | { readonly ok: false; readonly failure: ModelFailure; readonly tokens: TokenCount | undefined }

export interface Model {
  /**
   * Makes one streamed call. `onDelta` is called synchronously, in order, and must not throw. Includes retries, which
   * happen only before the first delta.
   */
  call(request: ModelRequest, onDelta: (delta: ModelDelta) => void, signal: AbortSignal): Promise<ModelOutcome>
}

/** Health of a provider, from the calls of this process. */
export interface ModelHealth {
  /** `resting`: repeated calls failed, and no call is made until `restsUntil`. */
  readonly state: 'untried' | 'up' | 'failing' | 'resting'
  /** Consecutive calls that failed because of the provider. */
  readonly failures: number
  /** `message` may be shown to callers. `at` and `restsUntil` are milliseconds since the Unix epoch. */
  readonly lastFailure?: { readonly message: string; readonly at: number }
  readonly restsUntil?: number
}

/** A name in the catalogue and its model, for the start log, `doctor`, and the console. */
export interface ModelDescription {
  readonly name: string
  readonly provider: string
  /** The provider's own name for it. */
  readonly model: string
  /** Source of the entry: `errand.yaml`, `ANTHROPIC_API_KEY`, `Ollama at 127.0.0.1:11434`, `built-in demo model`. */
  readonly source: string
  /** US dollars per million tokens. Without it a run has no cost. */
  readonly price?: Price
  /** True if the model accepts images. */
  readonly vision: boolean
  /** True if the model accepts whole PDFs. */
  readonly documents: boolean
  /** Defaults of the parameters of its calls. */
  readonly parameters?: ModelParameters
  /** Whether runs use the web search of its provider. */
  readonly searches?: boolean
  /** Its context window in tokens, prompt and answer together. Undefined: unknown. */
  readonly contextWindow?: number
  /** Names of models to try, in this order, if this one fails before the first fragment. */
  readonly fallbacks?: readonly string[]
  /** Whether this is the built-in demo model. */
  readonly demo: boolean
  /** Reason why it cannot be called, with what to do. A run that names it is refused with 503 `unavailable`. */
  readonly unavailable?: string
}

export interface CatalogueEntry extends ModelDescription {
  /** Health of its provider, which other names may share. Undefined if there is no provider. */
  readonly health?: () => ModelHealth
  /** Returns the same model every time. If it is `unavailable`, every call fails with that reason. */
  open(): Promise<Model> | Model
}

export interface Catalogue {
  /** Undefined if there is no such name. */
  get(name: string): CatalogueEntry | undefined
  /** All names, in the order of configuration. */
  names(): readonly string[]
  readonly defaultName: string
  /** All entries in the order of `names`, as plain data. */
  describe(): readonly ModelDescription[]
  /** Closes idle connections. Does not abort calls. */
  close(): Promise<void>
}
