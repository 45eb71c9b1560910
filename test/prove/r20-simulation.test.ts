/**
 * R20: the engine in simulated worlds, one for each seed. Several nodes share one database, callers come and go, and
 * faults occur, all in virtual time. A failing seed is reproducible: `ERRAND_SEED=… vitest run
 * test/prove/r20-simulation.test.ts` starts with it. The full form runs 10,000 seeds, the short form runs for some
 * seconds.
 */
import { expect, test } from 'vitest'
import { describeFailure } from '../simulation/describe.ts'
import { simulate } from '../simulation/simulate.ts'
import { figure, rounds, seeded } from '../support/prove.ts'

const HOUR_MS = 3_600_000

test('no fault of the nodes loses, duplicates or blocks an interaction, for any seed', {
  timeout: 7_200_000,
}, async () => {
  const { seed: first } = seeded('R20')
  const count = rounds(10_000, 100)
  const sum = { interactions: 0, events: 0, commits: 0, faults: 0, virtualMs: 0 }
  for (let seed = first; seed < first + count; seed++) {
    const verdict = await simulate(seed)
    expect(verdict.violations.length, describeFailure(verdict)).toBe(0)
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += verdict[name]
  }
  figure('R20', 'seeds', count)
  figure('R20', 'violations', 0)
  figure('R20', 'interactions', sum.interactions)
  figure('R20', 'events', sum.events)
  figure('R20', 'transactions', sum.commits)
  figure('R20', 'faults', sum.faults)
  figure('R20', 'virtual hours', Math.round(sum.virtualMs / HOUR_MS))
})
