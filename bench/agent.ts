/** The agent's figures: caching, recovery, and sizes of requests. They are counts and ratios, so one run is enough. */
import { brokenStreams, caching, killedAnswers } from './agent/recovery.ts'
import { parallelCalls, requestSizes, smallWindow } from './agent/requests.ts'
import type { Measurement, Plan, Verdict } from './measurement.ts'

const ROWS: Readonly<Record<string, (plan: Plan) => Promise<Verdict[]>>> = {
  A1: caching,
  A2: brokenStreams,
  A3: killedAnswers,
  A4: smallWindow,
  A5: requestSizes,
  A6: parallelCalls,
}

export const agent: Measurement = {
  name: 'agent',
  title: 'The agent',
  rows: Object.keys(ROWS),
  how:
    'Long runs against a scripted provider that bills a prompt cache by the longest common prefix, refuses edited prefixes, ' +
    'enforces a context window and breaks streams by seed (`test/support/model-provider`). Shares and ratios, no times, except for ' +
    'A6. `--rounds` sets the number of runs: A2 makes one for each round, A3 kills the answers of 40.',
  async measure(plan) {
    const verdicts: Verdict[] = []
    for (const row of plan.rows) verdicts.push(...(await ROWS[row]!(plan)))
    return { verdicts, tables: [] }
  },
}
