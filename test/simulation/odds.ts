/**
 * What may go wrong in one world, and how often. Each seed draws its own: most worlds know a few faults, some none, so
 * that what one fault hides in a storm shows in the calm.
 */
import type { Random } from '../support/prove.ts'

const WORST = {
  databaseLate: 0.1,
  databaseLostThere: 0.08,
  databaseLostBack: 0.08,
  hintsLost: 1,
  modelFails: 0.3,
  modelCut: 0.15,
  modelHangs: 0.08,
  sandboxRefused: 0.15,
  sandboxHangs: 0.05,
  sandboxDies: 0.1,
  filesFail: 0.1,
  receiverFails: 0.6,
  addressFails: 0.3,
}

export type Odds = Record<keyof typeof WORST, number>

export function drawOdds(random: Random): Odds {
  const drawn = Object.entries(WORST).map(([name, worst]) => [name, random.next() < 0.6 ? 0 : worst * random.next()])
  return Object.fromEntries(drawn) as Odds
}

export function heal(odds: Odds): void {
  for (const name of Object.keys(odds) as (keyof Odds)[]) odds[name] = 0
}
