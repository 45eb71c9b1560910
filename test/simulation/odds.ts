/**
 * Probabilities of faults in one world. Each seed draws its own, and most worlds have few kinds of faults or none,
 * because many faults at once can hide a bug that a single one reveals.
 */
import type { Random } from '../support/prove.ts'

const WORST = {
  databaseLate: 0.1,
  databaseLostThere: 0.08,
  databaseLostBack: 0.08,
  hintsLost: 1,
  modelFails: 0.3,
  modelCut: 0.15,
  modelLimited: 0.1,
  modelEmpty: 0.1,
  modelWindow: 0.2,
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
