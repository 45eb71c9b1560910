/**
 * The tool calls of one turn.
 *
 *   intents of all calls, one commit ─▶ all approvals, together ─▶ the calls, in order, several at once ─▶ results in call order
 *
 * A call starts only when the results that it waited for are durable. So the log shows which calls an earlier worker may have
 * started. A call that it can't have started is made as if nothing had happened.
 */
import type { ToolCallPart, ToolMessage } from '../../domain/message.ts'
import type { Decision } from '../../store/approvals.ts'
import { callIdsOf } from '../run/call-ids.ts'
import type { BatchCall, OpenBatch, Refusal } from '../run/restore.ts'
import { awaitApprovals } from './approval.ts'
import type { AgentContext } from './context.ts'
import { type LanedCall, mayStart, runInLanes } from './lanes.ts'
import { type PlannedCall, performCall, shownArgs } from './tool-call.ts'

/** A call whose intent is in the log. `isNew`: this worker wrote it. */
type Intent = BatchCall & Pick<PlannedCall, 'asked' | 'step'> & { readonly isNew: boolean }

/** Performs the calls of a turn, unless they are refused. Returns their results in the order of the calls. */
export function performCalls(
  context: AgentContext,
  calls: readonly ToolCallPart[],
  refusal: Refusal | undefined,
): Promise<ToolMessage[]> {
  const ids = callIdsOf(calls)
  const batch = calls.map((call, i) => ({ call, callId: ids[i]!, step: undefined, outlived: false }))
  return perform(context, { calls: batch, refusal })
}

/** The same for a turn that an earlier worker has begun. */
export function resumeCalls(context: AgentContext, batch: OpenBatch): Promise<ToolMessage[]> {
  const { past, recorder } = context.run
  // The earlier worker ended after the last decision, before it went on.
  const isDecided =
    past.restored.stage === 'requires_action' && batch.calls.every(({ approval }) => approval !== 'asked')
  if (isDecided) recorder.append({ type: 'stage', stage: 'working' })
  return perform(context, batch)
}

async function perform(context: AgentContext, { calls, refusal }: OpenBatch): Promise<ToolMessage[]> {
  const intents = await writeIntents(context, calls)
  const { waited, decisions } = await approve(context, refusal ? [] : intents)
  const planned = intents.flatMap((intent): (LanedCall & PlannedCall)[] => {
    const decision = decisions.get(intent.step)
    const lane = laneOf(context, intent.call, refusal !== undefined || decision?.approve === false)
    return intent.result ? [] : [{ ...intent, refusal, decision, lane, begun: !waited && !intent.isNew }]
  })
  const begun = mayHaveBegun(planned)
  const { recorder, signal } = context.run
  const failing = new AbortController()
  const kill = planned.length > 1 ? AbortSignal.any([context.kill, failing.signal]) : context.kill
  const results = await runInLanes(
    planned,
    async (call) => {
      const result = await performCall(context, { ...call, begun: begun.has(call) }, kill)
      if (planned.length > 1) await recorder.flush()
      return result
    },
    // The other calls end with the run. At shutdown they go on in the sandbox.
    (error) => signal.aborted || failing.abort(error),
  )
  return intents.map((intent) => intent.result ?? results.get(intent.callId)!)
}

/** Stores the calls before the first one starts. */
async function writeIntents(context: AgentContext, calls: readonly BatchCall[]): Promise<Intent[]> {
  const { recorder } = context.run
  const isNew = ({ step }: BatchCall) => step === undefined
  const batch = calls.some(isNew) ? context.nextBatch() : undefined
  const intents = calls.map((each) => ({
    ...each,
    asked: each.call,
    call: context.toolbox.resolve(each.call),
    step: each.step ?? context.nextStep(),
    isNew: isNew(each),
  }))
  const events = intents
    .filter((intent) => intent.isNew)
    .map(({ step, call, callId }) => {
      return { type: 'tool_call', step, name: call.name, args: shownArgs(call), callId, batch } as const
    })
  recorder.append(events)
  await recorder.flush()
  return intents
}

/** Obtains the decisions on all calls that need one. `waited`: some were missing, so no call has started yet. */
async function approve(context: AgentContext, intents: readonly Intent[]) {
  const tools = context.toolbox.tools()
  const decisions = new Map<number, Decision>()
  for (const { step, approval } of intents) {
    if (approval === 'approved') decisions.set(step, { step, approve: true })
    else if (typeof approval === 'object') decisions.set(step, { step, approve: false, reason: approval.reason })
  }
  const waiting = intents.filter(({ call, approval, result }) => {
    const needsOne = approval === undefined && call.args && tools.get(call.name)?.needsApproval
    return !result && (needsOne || approval === 'asked')
  })
  if (waiting.length === 0) return { waited: false, decisions }
  const asked = waiting.map(({ step, call, approval }) => {
    return { step, name: call.name, args: shownArgs(call), isAsked: approval === 'asked' }
  })
  for (const decision of await awaitApprovals(context.deps, context.run, asked)) decisions.set(decision.step, decision)
  return { waited: true, decisions }
}

/** `skipped`: the call is refused or denied. */
function laneOf({ toolbox }: AgentContext, call: ToolCallPart, skipped: boolean): LanedCall['lane'] {
  const tool = toolbox.tools().get(call.name)
  // A call without an effect runs beside any other.
  if (skipped || !tool || !call.args) return 'shared'
  return tool.lane?.(call.args) ?? 'alone'
}

/** The calls that an earlier worker may have started: as far as the order of starts allowed without the missing results. */
function mayHaveBegun<T extends LanedCall & { readonly begun: boolean }>(open: readonly T[]): ReadonlySet<T> {
  const begun = new Set<T>()
  for (const call of open) {
    if (!call.begun || !mayStart(call.lane, [...begun])) break
    begun.add(call)
  }
  return begun
}
