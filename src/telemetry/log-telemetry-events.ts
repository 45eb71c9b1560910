/** Telemetry events that are also logged: an interaction that another worker resumes, every end, and spent budgets. */

import type { Emit } from './events.ts'
import type { Log } from './log.ts'

export function logTelemetryEvents(log: Log): Emit {
  return (event) => {
    if (event.type === 'claimed' && event.run.epoch > 1) {
      const { id: interactionId, projectId, epoch } = event.run
      log.info({ interactionId, projectId, epoch }, 'resumed an interaction of another worker')
    }
    if (event.type === 'budget_passed') {
      const { type: _, ...fields } = event
      log.warn(fields, 'a part of a budget is spent')
    }
    if (event.type === 'ended') {
      const { interactionId, status, code, stopReason, usage } = event
      const { duration_ms: ms, model_calls: modelCalls, tool_calls: toolCalls } = usage
      log.info({ interactionId, status, code, stopReason, ms, modelCalls, toolCalls }, 'an interaction ended')
    }
  }
}
