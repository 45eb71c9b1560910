/** What the log tells of interactions beside what goes wrong: that one was taken up by another worker, and every end; and of budgets. */

import type { Emit } from './events.ts'
import type { Log } from './log.ts'

export function logMoments(log: Log): Emit {
  return (moment) => {
    if (moment.type === 'claimed' && moment.run.epoch > 1) {
      const { id: interactionId, projectId, epoch } = moment.run
      log.info({ interactionId, projectId, epoch }, 'took an interaction up')
    }
    if (moment.type === 'budget_passed') {
      const { type: _, ...fields } = moment
      log.warn(fields, 'a part of a budget is spent')
    }
    if (moment.type === 'ended') {
      const { interactionId, status, code, stopReason, usage } = moment
      const { duration_ms: ms, model_calls: modelCalls, tool_calls: toolCalls } = usage
      log.info({ interactionId, status, code, stopReason, ms, modelCalls, toolCalls }, 'an interaction ended')
    }
  }
}
