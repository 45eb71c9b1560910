/** The parameters of model calls: how much the model reasons, how random and how long its answer is. */
import type { ReasoningAnswer } from '../api/types.gen.js'

export const EFFORTS = ['none', 'low', 'medium', 'high', 'max'] as const satisfies readonly ReasoningAnswer['effort'][]
export const VERBOSITIES = ['low', 'medium', 'high'] as const

/** Without null values. */
export interface Parameters {
  readonly reasoning?: ReasoningAnswer
  readonly temperature?: number
  readonly verbosity?: (typeof VERBOSITIES)[number]
}

/** The parameters among other fields, without missing ones. */
export function parametersOf({ reasoning, temperature, verbosity }: Parameters): Parameters {
  return {
    ...(reasoning?.effort && { reasoning }),
    ...(temperature !== undefined && { temperature }),
    ...(verbosity && { verbosity }),
  }
}

/** A merge patch: null clears a parameter. */
export function patchOfParameters(parameters: Parameters) {
  return { reasoning: null, temperature: null, verbosity: null, ...parameters }
}
