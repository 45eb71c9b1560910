/** Estimated size of the next request, and the context windows that bound it. All of it follows from the log. */
import { estimateTokens } from '../../domain/usage.ts'
import type { CatalogueEntry, Overflow } from '../../models/port.ts'
import type { AgentContext } from './context.ts'

/** Share of a refused prompt that is taken as the window if the provider names none. */
const ASSUMED_SHARE = 0.8
/** A smaller number in a refusal is not a window. */
const SMALLEST_WINDOW = 1_000
/** Bounds of the tokens that a character costs. A provider may report useless counts. */
const LEAST_RATE = 1 / 4
const HIGHEST_RATE = 1

export interface ContextWindows {
  /** In tokens. Undefined: unknown. */
  of(entry: CatalogueEntry): number | undefined
  /** Remembers the window of a model that refused a prompt of about `prompt` tokens, for this run only. */
  learn(entry: CatalogueEntry, refusal: Overflow, prompt: number): void
}

/** `known`: what this run has learned before. */
export function createContextWindows(known: ReadonlyMap<string, number>): ContextWindows {
  const learned = new Map(known)
  return {
    of({ name, contextWindow = Number.POSITIVE_INFINITY }) {
      const window = Math.min(contextWindow, learned.get(name) ?? Number.POSITIVE_INFINITY)
      return Number.isFinite(window) ? window : undefined
    },
    learn({ name, contextWindow }, { window, prompt: counted }, prompt) {
      const assumed = contextWindow ?? Math.floor(ASSUMED_SHARE * (counted ?? prompt))
      learned.set(name, window !== undefined && window >= SMALLEST_WINDOW ? window : assumed)
    },
  }
}

export interface RequestSize {
  readonly tokens: number
  /** Tokens of a character of the conversation. */
  readonly rate: number
}

/** Estimates the next request: its last counted size and what was added or removed since, or four characters a token. */
export function requestSize(context: AgentContext, entry: CatalogueEntry): RequestSize {
  const { conversation } = context
  const { system = '', tools } = context.frame.for(entry)
  const frame = system.length + JSON.stringify(tools).length
  const characters = conversation.characters()
  const measured = conversation.measured()
  if (!measured) return { tokens: estimateTokens(characters + frame), rate: LEAST_RATE }
  const rate = measured.tokens / (measured.characters + frame)
  const change = characters - measured.characters
  const changeRate = change < 0 ? rate : Math.min(HIGHEST_RATE, Math.max(LEAST_RATE, rate))
  return { tokens: Math.ceil(measured.tokens + change * changeRate), rate: changeRate }
}
