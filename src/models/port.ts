/**
 * The port behind which every model stands: one streamed call, in no provider's dialect.
 *
 * Contract: `call` never throws and never rejects. A failure is a value, so that the engine's loop has one way through.
 * It ends soon after `signal` aborts, with `{ ok: false }`, its connection closed.
 */
import type { JsonSchema } from '../domain/interaction.ts'
import type { AssistantMessage, FinishReason, Message } from '../domain/message.ts'
import type { Price, TokenCount } from '../domain/usage.ts'
import type { Overflow } from './context-window.ts'

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
  /** What is left of the run's budget: at least 1. Reasoning counts. */
  readonly maxOutputTokens: number
  readonly responseFormat?: JsonSchema
  /** The model may search the web by its provider's own means (`ModelDescription.searches`). */
  readonly search?: boolean
  /** Undefined: the request belongs to no conversation that could use the provider's prompt cache. */
  readonly cache?: PromptCaching
}

export interface PromptCaching {
  /** The same for all requests of one conversation. Some providers route requests with one key to one cache. */
  readonly key: string
  /** Requests may be far apart, because people decide on tool calls in between: an hour instead of minutes. */
  readonly long: boolean
}

/** What a caller of a model sees while it speaks. Tool calls come whole, with the outcome. */
export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A new reasoning block begins: the next `reasoning` text is another step. Never before the first block. */
  | { readonly type: 'reasoning_block' }
  /** A tool that the provider ran, with what it brought. `late`: told only now, the text before rests on it already. */
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
  /** For the caller: what the provider did, without its address or key. */
  readonly message: string
  readonly retryable: boolean
  readonly kind:
    | 'refused' // the provider answered with an error that trying again won't mend (400, 401, 404)
    | 'overloaded' // 429 and 5xx, after all tries
    | 'unreachable' // no connection, after all tries
    | 'stalled' // the idle timeout fired
    | 'truncated' // the stream ended before its end was said
    | 'malformed' // what came is not the protocol
    | 'aborted' // `signal` aborted
  /** Set if the provider refused the prompt because it does not fit the model's context window. */
  readonly tooLong?: Overflow
}

export type ModelOutcome =
  | {
      readonly ok: true
      readonly message: AssistantMessage
      readonly finish: FinishReason
      /** Undefined where the provider reported none: the engine estimates. */
      readonly tokens: TokenCount | undefined
    }
  | { readonly ok: false; readonly failure: ModelFailure; readonly tokens: TokenCount | undefined }

export interface Model {
  /**
   * One streamed call. `onDelta` is called in order, synchronously, and must not throw. Retries happen inside, and only
   * before the first delta.
   */
  call(request: ModelRequest, onDelta: (delta: ModelDelta) => void, signal: AbortSignal): Promise<ModelOutcome>
}

/** How a provider did lately, as far as this process has called it. */
export interface ModelHealth {
  /** `resting`: it failed again and again, and is left alone until `restsUntil`. */
  readonly state: 'untried' | 'up' | 'failing' | 'resting'
  /** Calls in a row that failed by its trouble. */
  readonly failures: number
  /** For callers, as every failure's message. `at`, `restsUntil`: milliseconds since 1970. */
  readonly lastFailure?: { readonly message: string; readonly at: number }
  readonly restsUntil?: number
}

/** A name of the catalogue and what stands behind it: for the start log, `doctor`, and the console. */
export interface ModelDescription {
  readonly name: string
  readonly provider: string
  /** The provider's own name for it. */
  readonly model: string
  /** Where it came from: `errand.yaml`, `ANTHROPIC_API_KEY`, `Ollama at 127.0.0.1:11434`, `built-in demo model`. */
  readonly source: string
  /** US dollars. Without it a run has no cost. */
  readonly price?: Price
  /** Whether images may be put before it. */
  readonly vision: boolean
  /** Whether PDFs may be, whole. */
  readonly documents: boolean
  /** Whether it is to search the web by its provider's own means. */
  readonly searches?: boolean
  /** Names of the models that are asked, in this order, where this one fails before it has said anything. */
  readonly fallbacks?: readonly string[]
  /** True where this is the built-in demo model, standing in for a real one. */
  readonly demo: boolean
  /** Why it can't be called, with what to do. A run that names it is refused with 503 `unavailable`. */
  readonly unavailable?: string
}

export interface CatalogueEntry extends ModelDescription {
  /** Of its provider, which other names may share. Absent where nothing can fail. */
  readonly health?: () => ModelHealth
  /** Cheap after the first time. Where it is `unavailable`, every call is a failure that says so. */
  open(): Promise<Model> | Model
}

export interface Catalogue {
  /** Undefined where there is no such name. */
  get(name: string): CatalogueEntry | undefined
  /** All names, in the order of configuration. */
  names(): readonly string[]
  readonly defaultName: string
  /** All names with what stands behind them, in the order of `names`; plain data. */
  describe(): readonly ModelDescription[]
  /** Aborts nothing; closes idle connections. */
  close(): Promise<void>
}
