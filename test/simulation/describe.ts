/** Describes a violation: what happened, the decisions that led to it, and the command that reproduces it. */
import type { Verdict } from './simulate.ts'

/** Maximum number of decisions that are shown. A world has about a thousand. */
const TOLD = 150

export function describeFailure({ seed, violations, decisions, errors }: Verdict): string {
  const id = /int_\w+/.exec(violations[0] ?? '')?.[0]
  const told = decisions.filter(
    ({ who, what }) => who === 'fate' || /starts|VIOLATION/.test(who + what) || isOf(id, what),
  )
  return [
    `ERRAND_SEED=${seed} vitest run test/prove/r20-simulation.test.ts`,
    ...violations,
    '',
    'What was decided, milliseconds from the beginning:',
    ...told.slice(-TOLD).map(({ at, who, what }) => `${at.toFixed(1).padStart(10)} ${who}: ${what}`),
    '',
    'What the nodes logged as errors:',
    ...errors.slice(-10),
  ].join('\n')
}

/**
 * Whether a decision may concern the interaction: it names the id, or it is a sandbox request or a database write,
 * which name no interaction.
 */
function isOf(id: string | undefined, what: string): boolean {
  return id !== undefined && (what.includes(id) || /^(open|exec|destroy|kill|write)/.test(what))
}
