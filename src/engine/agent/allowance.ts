/**
 * The output tokens of the next model call, and whether it must be the last one.
 *
 * A run that has used tools ends with an answer. A share of each limit is reserved for one last turn, in which the model is
 * asked to answer and its tool calls are declined.
 */
import type { StopReason } from '../../domain/event.ts'
import type { RunSpec } from '../../domain/interaction.ts'
import type { Price } from '../../domain/usage.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import type { AgentContext } from './context.ts'

/** Maximum reserve, in output tokens. */
const RESERVED_TOKENS = 4_096
/** Limits below this many output tokens reserve none: an eighth of them is too short for an answer. */
const LEAST_LIMIT_TOKENS = 2_048
/** Minimum for a turn with tools. A shorter one is useless. */
const LEAST_TURN_TOKENS = 256
/** Maximum reserve, in milliseconds. */
const RESERVED_MS = 60_000
/** Shorter runs, in seconds, reserve no time: a tenth of them is too short for an answer. */
const LEAST_DURATION_S = 60

export interface Allowance {
  /** Output tokens of the next call. 0: a limit is reached, so there is no further call. */
  readonly tokens: number
  /** The limit that determines `tokens`. */
  readonly limit: StopReason
  /** No further turn fits, so the model must answer now. */
  readonly last: boolean
}

/** Milliseconds that tools leave for the last turn: a tenth of the run, at most a minute. */
export function reservedMs({ policy: { maxTurnDuration } }: Pick<RunSpec, 'policy'>): number {
  return maxTurnDuration < LEAST_DURATION_S ? 0 : Math.min(RESERVED_MS, maxTurnDuration * 100)
}

/** A limit in output tokens: those that are left, and those reserved for the last turn. */
interface Bound {
  readonly limit: StopReason
  readonly tokens: number
  readonly reserved: number
}

/** `prompt`: characters of the request. `usesTools`: the model may ask for tools, so that further turns may follow. */
export async function allowance(
  context: Pick<AgentContext, 'deps' | 'run'>,
  price: Price | undefined,
  prompt: number,
  usesTools: boolean,
): Promise<Allowance> {
  const { spec, meter, remainingMs } = context.run
  const callsLeft = context.deps.limits.maxModelCalls - meter.modelCalls()
  if (callsLeft < 1) return { tokens: 0, limit: 'max_model_calls', last: false }
  const bounds = await boundsOf(context, price, prompt)
  const least = bounds.reduce((a, b) => (b.tokens < a.tokens ? b : a))
  if (!usesTools || least.tokens < 1) return { ...least, last: false }
  const tightest = bounds.reduce((a, b) => (b.tokens - b.reserved < a.tokens - a.reserved ? b : a))
  const regular = tightest.tokens - tightest.reserved
  const hasRoom = regular >= Math.min(LEAST_TURN_TOKENS, tightest.reserved)
  // A run that has not worked yet has nothing to answer from.
  if (meter.modelCalls() === 0)
    return { ...(hasRoom ? { ...tightest, tokens: Math.max(1, regular) } : least), last: false }
  const last = (limit: StopReason): Allowance => ({ tokens: least.tokens, limit, last: true })
  if (remainingMs() < reservedMs(spec)) return last('max_turn_duration')
  if (callsLeft === 1) return last('max_model_calls')
  return hasRoom ? { tokens: Math.max(1, regular), limit: tightest.limit, last: false } : last(tightest.limit)
}

async function boundsOf(
  { deps, run }: Pick<AgentContext, 'deps' | 'run'>,
  price: Price | undefined,
  prompt: number,
): Promise<readonly Bound[]> {
  const { spec, meter, claim, recorder, signal } = run
  const { maxOutputTokens, maxCost = Number.POSITIVE_INFINITY } = spec.policy
  const budgetLeft = await retryWhileDatabaseDown(
    MAX_OUTAGE_MS,
    () => deps.budgets.left(claim.projectId, recorder.flush),
    signal,
  )
  const tokens = Math.max(0, maxOutputTokens - meter.outputTokens())
  const money = (limit: StopReason, dollars: number): Bound => {
    const reserved = price ? shareOf((dollars * 1e6) / price.output) : 0
    // The reserve also pays for the last turn's prompt.
    const again = reserved > 0 ? meter.promptCost(price!, prompt) / price!.output : 0
    return { limit, tokens: meter.affordable(dollars, price, prompt), reserved: reserved + Math.ceil(again * 1e6) }
  }
  return [
    { limit: 'max_output_tokens', tokens, reserved: shareOf(maxOutputTokens) },
    money('max_cost', maxCost),
    money('budget_exceeded', (meter.cost() ?? 0) + budgetLeft),
  ]
}

function shareOf(limitTokens: number): number {
  return limitTokens < LEAST_LIMIT_TOKENS ? 0 : Math.min(RESERVED_TOKENS, Math.floor(limitTokens / 8))
}
