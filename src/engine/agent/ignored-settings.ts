/** Warnings about parameters that were not sent as asked: one for each model and parameter in a run, also across workers. */
import type { IgnoredParameter } from '../../domain/model-parameters.ts'
import type { Run } from '../run/run.ts'

/** Returns a function that records an ignored parameter, unless the log has it. */
export function createIgnoredReporter({ recorder, past }: Pick<Run, 'recorder' | 'past'>) {
  const reported = new Set(past.restored.warnings)
  return ({ param, message }: IgnoredParameter): void => {
    if (reported.has(message)) return
    reported.add(message)
    recorder.append({ type: 'warning', code: 'setting_ignored', param, message })
  }
}
