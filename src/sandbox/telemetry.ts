/** Emits a telemetry event each time a sandbox is opened. */
import type { Emit } from '../telemetry/events.ts'
import { SandboxError, type Sandboxes } from './port.ts'

export function withTelemetry(sandboxes: Sandboxes, emit: Emit): Sandboxes {
  return {
    ...sandboxes,
    async open(spec, signal) {
      const startedAt = performance.now()
      const { interactionId: id, epoch, name = 'main' } = spec
      const event = { type: 'sandbox_opened', run: { id, epoch }, name } as const
      try {
        const sandbox = await sandboxes.open(spec, signal)
        emit({ ...event, fresh: sandbox.fresh, ms: performance.now() - startedAt })
        return sandbox
      } catch (error) {
        const code = error instanceof SandboxError ? error.code : 'unavailable'
        emit({ ...event, fresh: false, error: code, ms: performance.now() - startedAt })
        throw error
      }
    },
  }
}
