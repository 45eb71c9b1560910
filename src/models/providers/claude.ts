/** The parameters that Claude models accept, on Anthropic's API and on Bedrock ("Extended thinking" and "Effort" in Anthropic's documentation). */
import type { Level, ParameterSupport } from '../parameters.ts'

export function claudeParameters(model: string): ParameterSupport {
  if (thinksAdaptively(model)) {
    const levels = ['low', 'medium', 'high', 'max'] as const
    return {
      levels: /claude-(?:opus-5-5|sonnet-5-5|fable-5)/.test(model) ? levels : ['none', ...levels],
      maxTemperature: /claude-(?:opus|sonnet)-4-6/.test(model) ? 1 : undefined,
      temperatureWith: (level) => level === 'none',
    }
  }
  const temperature = {
    maxTemperature: 1,
    temperatureWith: (level: Level | undefined) => level === undefined || level === 'none',
  }
  return { levels: takesBudget(model) ? ['none', 'low', 'medium', 'high', 'max'] : [], ...temperature }
}

/** Whether the model decides itself how much to think, by an effort. */
export function thinksAdaptively(model: string): boolean {
  return /claude-(opus-4-[6-9]|sonnet-4-6|(opus|sonnet|haiku|fable)-[5-9])/.test(model)
}

function takesBudget(model: string): boolean {
  return /claude-(?:3-7|(?:opus|sonnet|haiku)-4)/.test(model) && !thinksAdaptively(model)
}

const BUDGETS: Readonly<Partial<Record<Level, number>>> = { low: 4_096, medium: 10_240, high: 24_576, max: 31_999 }
const LEAST_BUDGET = 1_024

/**
 * Tokens of thinking for a model that takes a budget instead of an effort. The same in each call of a run, because another
 * budget would invalidate the prompt cache, until the limit leaves less. Undefined: the model does not think in this call.
 */
export function thinkingBudget(
  model: string,
  level: Level | undefined,
  maxOutputTokens: number | undefined,
): number | undefined {
  const budget = level && takesBudget(model) ? BUDGETS[level] : undefined
  if (budget === undefined) return undefined
  // At least as much is left for the answer as the smallest budget has.
  const most = (maxOutputTokens ?? Number.POSITIVE_INFINITY) - LEAST_BUDGET
  return most < LEAST_BUDGET ? undefined : Math.min(budget, most)
}
