/**
 * Tool calls that wait for a person's approval.
 *
 *   tool_calls ─▶ approval_required for each, stage requires_action ─▶ (decisions in the database) ─▶ approval_decided for each,
 *   as it comes ─▶ all decided: stage working ─▶ the calls of the turn run
 *
 * Any node may receive and write a decision. The worker reads it on a hint or at its next poll. Until all are decided the run
 * is parked: it keeps its lease, its sandboxes and its connections, which can't be recreated, but it holds no worker slot and
 * does not count towards its project's running interactions. No call of the turn runs before every `approval_decided` is in the
 * log, so after a crash the next worker waits for the rest, or finds the decisions.
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

/** A call that waits. `isAsked`: an earlier worker has requested its approval. */
export type WaitingCall = PendingApproval & { readonly isAsked: boolean }

/** Requests the approvals and waits for all of them. The decisions are in the log when it resolves. Rejects with the signal's reason. */
export async function awaitApprovals(
  deps: DecisionSources,
  run: Run,
  calls: readonly WaitingCall[],
): Promise<readonly Decision[]> {
  const { claim, recorder, slot, signal } = run
  const requests = calls.flatMap(({ isAsked, ...call }) =>
    isAsked ? [] : [{ type: 'approval_required', ...call } as const],
  )
  recorder.append([...requests, { type: 'stage', stage: 'requires_action' }])
  recorder.attach(() => resetAttemptsStatement(deps.db, claim))
  await recorder.flush()
  const decisions = await waitForDecisions(deps, run, new Set(calls.map(({ step }) => step)))
  await slot.reacquire(signal)
  recorder.append({ type: 'stage', stage: 'working' })
  await recorder.flush()
  return decisions
}

/** Logs each decision as it comes. */
async function waitForDecisions(
  { db, hub }: DecisionSources,
  { claim, recorder, slot, signal }: Run,
  steps: Set<number>,
): Promise<readonly Decision[]> {
  const decisions: Decision[] = []
  let hint = Promise.withResolvers<void>()
  const unsubscribe = hub.subscribe(claim.id, () => hint.resolve())
  const onAbort = () => hint.resolve()
  signal.addEventListener('abort', onAbort)
  try {
    for (;;) {
      if (signal.aborted) throw signal.reason
      for (const decision of await findDecisions(db, claim.id)) {
        if (!steps.delete(decision.step)) continue
        decisions.push(decision)
        recorder.append({ type: 'approval_decided', ...decision })
      }
      if (steps.size === 0) return decisions
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

/** None if the database is unavailable: the next poll tries again. */
async function findDecisions(db: Database, interactionId: string): Promise<readonly Decision[]> {
  try {
    return await readDecisions(db, interactionId)
  } catch {
    return []
  }
}

/** The calls without a decision. */
export async function undecided(
  db: Database,
  interactionId: string,
  asked: readonly PendingApproval[],
): Promise<readonly PendingApproval[]> {
  if (asked.length === 0) return asked
  const decided = new Set((await readDecisions(db, interactionId)).map(({ step }) => step))
  return asked.filter(({ step }) => !decided.has(step))
}

/** A caller's decision: for named steps, or the same for all waiting calls. */
export type Verdict = { readonly decisions: readonly Decision[] } | { readonly all: Omit<Decision, 'step'> }

/**
 * Writes a verdict. Idempotent. Throws ErrandError `conflict` if a step was decided otherwise, or nothing waits.
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
  const stored = await readDecisions(db, interactionId)
  for (const { step, approve } of decisions) {
    const first = stored.find((decision) => decision.step === step)
    if (first && first.approve !== approve)
      throw conflict(`The tool call at step ${step} was decided by somebody else.`)
  }
  // A hint without events: a worker in this process reads the decision at once, workers on other nodes at their next poll.
  hub.publish(interactionId, [])
}

function conflict(message: string): ErrandError {
  return new ErrandError('conflict', message)
}

/** The result of a denied call, for the model. */
export function denial({ reason }: Decision): string {
  return reason === undefined || reason === ''
    ? 'This call was not approved, and was not made. Go on without it, or say what you would need it for.'
    : `This call was not approved, and was not made. The reason given: ${reason}`
}
