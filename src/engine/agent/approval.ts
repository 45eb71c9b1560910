/**
 * A tool call that waits for a person.
 *
 *   tool_call ─▶ approval_required, stage requires_action ─▶ (decision in the database) ─▶ approval_decided, stage working ─▶ act
 *
 * The decision is written by whoever heard it, on any node; the worker reads it on a hint or by its poll. Until then
 * the run is parked: it keeps its lease, its sandboxes and its connections, for they hold what can't be made again, but
 * neither a slot of its worker nor a place among those of its project that may run at once. Before `approval_decided`
 * stands in the log nothing was done, so a worker that takes the run up waits again, or finds the decision that came
 * meanwhile.
 */
import { ErrandError } from '../../domain/errors.ts'
import type { PendingApproval } from '../../domain/fold.ts'
import { type Decision, insertDecisions, readDecisions } from '../../store/approvals.ts'
import type { Database } from '../../store/port.ts'
import { resetAttemptsStatement } from '../../store/queue.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from '../run/run.ts'

const POLL_MS = 1_000

/** The database and the hub that decisions come through. */
type DecisionSources = Pick<EngineDependencies, 'db' | 'hub'>

/** Asks, unless an earlier worker did, and waits; the decision is in the log when it resolves. Rejects with the signal's reason. */
export async function awaitApproval(
  deps: DecisionSources,
  run: Run,
  call: PendingApproval,
  asked: boolean,
): Promise<Decision> {
  const { claim, recorder, slot, signal } = run
  if (!asked) recorder.append({ type: 'approval_required', ...call })
  recorder.append({ type: 'stage', stage: 'requires_action' })
  recorder.attach(() => resetAttemptsStatement(deps.db, claim))
  await recorder.flush()
  const decision = await waitForDecision(deps, run, call.step)
  await slot.reacquire(signal)
  recorder.append({ type: 'approval_decided', ...decision })
  recorder.append({ type: 'stage', stage: 'working' })
  await recorder.flush()
  return decision
}

async function waitForDecision({ db, hub }: DecisionSources, run: Run, step: number): Promise<Decision> {
  const { claim, slot, signal } = run
  let hint = Promise.withResolvers<void>()
  const unsubscribe = hub.subscribe(claim.id, () => hint.resolve())
  const onAbort = () => hint.resolve()
  signal.addEventListener('abort', onAbort)
  try {
    for (;;) {
      if (signal.aborted) throw signal.reason
      const found = await findDecision(db, claim.id, step)
      if (found) return found
      slot.release()
      const timer = setTimeout(() => hint.resolve(), POLL_MS)
      await hint.promise
      clearTimeout(timer)
      hint = Promise.withResolvers()
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', onAbort)
  }
}

/** A database that is away for a moment is asked again. */
async function findDecision(db: Database, interactionId: string, step: number): Promise<Decision | undefined> {
  try {
    return (await readDecisions(db, interactionId)).find((decision) => decision.step === step)
  } catch {
    return undefined
  }
}

/** Those of the calls on which nobody has decided yet. */
export async function undecided(
  db: Database,
  interactionId: string,
  asked: readonly PendingApproval[],
): Promise<readonly PendingApproval[]> {
  if (asked.length === 0) return asked
  const decided = new Set((await readDecisions(db, interactionId)).map(({ step }) => step))
  return asked.filter(({ step }) => !decided.has(step))
}

/** What a caller decides: on the steps it names, or the same on all that wait. */
export type Verdict = { readonly decisions: readonly Decision[] } | { readonly all: Omit<Decision, 'step'> }

/**
 * Writes a verdict. The same again is no error; another one on a step that was decided is `conflict`, and so is one where
 * nothing waits.
 */
export async function decide(
  { db, hub }: DecisionSources,
  interactionId: string,
  asked: readonly PendingApproval[],
  verdict: Verdict,
  by: { readonly keyId: string; readonly at: number },
): Promise<void> {
  const made = await readDecisions(db, interactionId)
  const isOpen = ({ step }: PendingApproval) => !made.some((decision) => decision.step === step)
  const decisions =
    'all' in verdict ? asked.filter(isOpen).map(({ step }) => ({ step, ...verdict.all })) : verdict.decisions
  if (decisions.length === 0) throw conflict(`No tool call of the interaction ${interactionId} waits for approval.`)
  for (const { step, approve } of decisions) {
    const earlier = made.find((decision) => decision.step === step)
    if (earlier && earlier.approve !== approve) {
      throw conflict(`The tool call at step ${step} was ${earlier.approve ? 'approved' : 'denied'} already.`)
    }
    if (!earlier && !asked.some((call) => call.step === step)) {
      throw conflict(`No tool call at step ${step} of the interaction ${interactionId} waits for approval.`)
    }
  }
  await insertDecisions(
    db,
    interactionId,
    decisions.map((decision) => ({ ...decision, ...by })),
  )
  const standing = await readDecisions(db, interactionId)
  for (const { step, approve } of decisions) {
    const first = standing.find((decision) => decision.step === step)
    if (first && first.approve !== approve)
      throw conflict(`The tool call at step ${step} was decided by somebody else.`)
  }
  // No event: the worker that waits in this process looks at once, all others by their poll.
  hub.publish(interactionId, [])
}

function conflict(message: string): ErrandError {
  return new ErrandError('conflict', message)
}

/** What a model is told whose call was denied. */
export function denial({ reason }: Decision): string {
  return reason === undefined || reason === ''
    ? 'This call was not approved, and was not made. Go on without it, or say what you would need it for.'
    : `This call was not approved, and was not made. The reason given: ${reason}`
}
