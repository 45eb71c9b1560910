/** Counts the usage of a run. It starts from the stored turns, so it covers the whole run, including earlier workers. */
import {
  addTokens,
  costOf,
  estimateTokens,
  formatAmount,
  NO_TOKENS,
  type Price,
  type TokenCount,
  type Usage,
} from '../../domain/usage.ts'
import type { Turn } from '../../store/turns.ts'

export interface Meter {
  /** Counts a call and ends it. */
  addCall(tokens: TokenCount): void
  /** Counts a billed attempt that was retried within the call under way. */
  addRetried(tokens: TokenCount): void
  /** Begins a call. Its output is estimated into `usage` until `addCall` or `dropCall`. */
  startCall(promptCharacters: number, price: Price | undefined): void
  /** Discards a call that failed before any output: it is not billed. */
  dropCall(): void
  /** Counts characters of the call under way. */
  say(characters: number): void
  /** The estimate for the call under way, as its provider would count it. */
  estimate(): TokenCount
  /** Estimated cost of the call under way, in US dollars. */
  underWay(): number
  addToolCall(): void
  startSandbox(): void
  outputTokens(): number
  modelCalls(): number
  /** Tokens of the last added call. */
  lastCall(): TokenCount
  /** Cost of the last added call, in US dollars. */
  lastCost(): number
  /** Cost so far in US dollars; undefined if the model has no price. */
  cost(): number | undefined
  /** Estimated cost of a prompt of `characters`, in US dollars, with the expected cache reads. */
  promptCost(price: Price, characters: number): number
  /** Output tokens at `price` that a total of `maxCost` US dollars still pays for, after a prompt of `promptCharacters`. */
  affordable(maxCost: number, price: Price | undefined, promptCharacters: number): number
  usage(): Usage
}

export interface MeterOptions {
  /** The requested model. If it has no price, the run has no cost. */
  readonly model: string
  readonly priceOf: (model: string) => Price | undefined
  readonly createdAt: number
  readonly now: () => number
  readonly turns: readonly Pick<Turn, 'tokens' | 'model'>[]
  readonly toolCalls: number
}

export function createMeter({ model, priceOf, createdAt, now, turns, ...start }: MeterOptions): Meter {
  const price = priceOf(model)
  let tokens = turns.map((turn) => turn.tokens).reduce(addTokens, NO_TOKENS)
  let spent = turns.reduce((sum, turn) => sum + costAt(turn.tokens, priceOf(turn.model ?? model)), 0)
  let modelCalls = turns.length
  let { toolCalls } = start
  let lastCall = NO_TOKENS
  let lastCost = 0
  /** Input that the provider has in its prompt cache after the last call: the next request of the conversation begins with it. */
  let cached = cachedAfter(turns.at(-1)?.tokens)
  let call: { prompt: number; said: number; price: Price | undefined } | undefined
  let sandboxSince: number | undefined

  function estimatePrompt(characters: number): TokenCount {
    const input = estimateTokens(characters)
    return { ...NO_TOKENS, input, cachedInput: Math.min(cached, input) }
  }

  function estimate(): TokenCount {
    return call ? { ...estimatePrompt(call.prompt), output: estimateTokens(call.said) } : NO_TOKENS
  }

  function add(counted: TokenCount): void {
    tokens = addTokens(tokens, counted)
    lastCost = price ? costAt(counted, call?.price) : 0
    spent += costAt(counted, call?.price)
    modelCalls++
    lastCall = counted
  }

  return {
    addCall(counted) {
      add(counted)
      cached = cachedAfter(counted)
      call = undefined
    },
    addRetried: add,
    startCall(promptCharacters, callPrice) {
      call = { prompt: promptCharacters, said: 0, price: callPrice }
    },
    dropCall() {
      call = undefined
    },
    say(characters) {
      if (call) call.said += characters
    },
    estimate,
    underWay: () => (price ? costAt(estimate(), call?.price) : 0),
    addToolCall() {
      toolCalls++
    },
    startSandbox() {
      sandboxSince ??= now()
    },
    // Methods instead of getters: V8 turns objects with getters into slow hash tables.
    outputTokens: () => tokens.output,
    modelCalls: () => modelCalls,
    lastCall: () => lastCall,
    lastCost: () => lastCost,
    cost: () => (price ? spent : undefined),
    promptCost: (callPrice, characters) => costOf(estimatePrompt(characters), callPrice),
    affordable(maxCost, callPrice, promptCharacters) {
      if (!price || !callPrice) return Number.POSITIVE_INFINITY
      if (spent >= maxCost) return 0
      const left = maxCost - spent - costOf(estimatePrompt(promptCharacters), callPrice)
      // The prompt is only an estimate, so any money left allows a call.
      return Math.max(1, Math.floor((left * 1e6) / callPrice.output))
    },
    usage() {
      const underWay = estimate()
      const total = addTokens(tokens, underWay)
      const cost = spent + costAt(underWay, call?.price)
      const at = now()
      return {
        input_tokens: total.input,
        output_tokens: total.output,
        total_tokens: total.input + total.output,
        duration_ms: Math.max(0, at - createdAt),
        cached_input_tokens: total.cachedInput,
        cache_write_tokens: total.cacheWrite ?? 0,
        reasoning_tokens: total.reasoning,
        model_calls: modelCalls + (call ? 1 : 0),
        tool_calls: toolCalls,
        sandbox_ms: sandboxSince === undefined ? 0 : Math.max(0, at - sandboxSince),
        ...(price && { cost: { amount: formatAmount(cost), currency: 'USD' as const } }),
      }
    },
  }
}

function cachedAfter(call: TokenCount | undefined): number {
  return call ? call.cachedInput + (call.cacheWrite ?? 0) : 0
}

function costAt(tokens: TokenCount, price: Price | undefined): number {
  return price ? costOf(tokens, price) : 0
}
