/**
 * Records what happened in a simulated world, as observed by the database, the sandbox hosts and the callers instead of
 * the engine, and reports a violation as soon as an invariant breaks:
 * - I1: events are numbered 1, 2, 3 … without a gap, and `last_seq` is the last number.
 * - I2: an interaction ends once, with `completed` as its last event; its status never changes afterwards.
 * - I3: the fragments joined are the output, with no word missing or repeated.
 * - I4: every follower receives the stored events in order, and the trace agrees with them.
 * - I5: only the holder of the lease writes events. Another node can end the interaction only by raising its epoch.
 * - I6: an accepted interaction is stored, and ends.
 * - I7: an interaction that completes or fails has no sandbox left.
 * - R7 (docs/proof.md): no lease ends and no timeout is reported too early because a node's clock is wrong.
 */

import type { RowState, Witnessed } from './database.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface LoggedEvent {
  readonly seq: number
  readonly type: string
  readonly data: string
}

/** One interaction, as the database saw it. */
export interface Recorded {
  row: RowState
  /** Name of the node that holds the current epoch; undefined if no node does. */
  holder: string | undefined
  readonly events: LoggedEvent[]
  removed: boolean
  /** True time, in milliseconds since 1970. */
  readonly acceptedAt: number
  claimedAt: number | undefined
}

export interface Journal {
  readonly violations: readonly string[]
  readonly interactions: ReadonlyMap<string, Recorded>
  readonly commits: number
  violation(id: string, what: string): void
  /** A transaction was committed. */
  committed(by: Process, seen: readonly Witnessed[]): void
  /** A step began to run in a sandbox. */
  ran(host: string, id: string, key: string): void
  /** A worker used a sandbox. */
  acted(by: Process, id: string, epoch: number): void
  /** A tool with an effect outside the sandbox had that effect. */
  effect(id: string, key: string): void
  /** A webhook receiver got the end of an interaction. */
  told(id: string): void
  /** A caller got the answer that the interaction was accepted. */
  acknowledged(id: string, idempotencyKey: string | undefined): void
  /** A caller got the answer of this node that the interaction was cancelled. */
  cancelled(id: string, by: Process): void
  /** A follower received these events. */
  shown(id: string, events: readonly LoggedEvent[]): void
}

export interface JournalOptions {
  readonly scheduler: Scheduler
  readonly runningPerProject: number
  /**
   * Names of the hosts that have a sandbox of the interaction now: the host of this node or, without a node, all
   * healthy hosts.
   */
  readonly sandboxesOf: (id: string, node?: Process) => readonly string[]
  /** Whether the process with this name is alive. */
  readonly lives: (name: string) => boolean
}

export function createJournal({ scheduler, runningPerProject, sandboxesOf, lives }: JournalOptions): Journal {
  const violations: string[] = []
  const interactions = new Map<string, Recorded>()
  /** Accepted interactions for each idempotency key. */
  const acknowledged = new Map<string, Set<string>>()
  const steps = new Set<string>()
  const actors = new Map<string, string>()
  const cancelledAt = new Set<string>()
  let commits = 0

  function violation(id: string, what: string): void {
    violations.push(`${what} (${id})`)
    scheduler.note('VIOLATION', `${what} (${id})`)
  }

  /** Returns true if the run failed with a retryable error. */
  function mayBeRetried({ events }: Recorded): boolean {
    return events.some(({ type, data }) => type === 'error' && JSON.parse(data).retryable)
  }

  /** Checks the limit of running interactions. Interactions that wait for approval don't count. */
  function checkRoom({ id, projectId }: RowState): void {
    const others = [...interactions.values()].filter(
      ({ row }) =>
        row.id !== id &&
        row.projectId === projectId &&
        row.status === 'running' &&
        row.stage !== 'requires_action' &&
        row.leaseUntil > scheduler.now,
    )
    if (others.length >= runningPerProject) {
      violation(id, `claimed while ${others.length} of ${projectId} run; the limit is ${runningPerProject}`)
    }
  }

  function committed(by: Process, seen: readonly Witnessed[]): void {
    commits++
    // Interactions that this transaction created or ended. It may write their events without holding the lease.
    const own = new Set<string>()
    for (const it of seen) {
      if (it.kind === 'row') sawRow(by, it.row, own)
      else if (it.kind === 'event') sawEvent(by, it, own)
      else sawGone(it.id)
    }
    for (const id of new Set(seen.map((it) => (it.kind === 'row' ? it.row.id : it.id)))) checkTouched(by, id)
  }

  function sawRow(by: Process, row: RowState, own: Set<string>): void {
    const { id } = row
    const known = interactions.get(id)
    if (!known) {
      const at = { acceptedAt: scheduler.now, claimedAt: undefined }
      interactions.set(id, { row, holder: undefined, events: [], removed: false, ...at })
      own.add(id)
      return
    }
    const before = known.row
    known.row = row
    const raised = row.epoch !== before.epoch
    if (raised && row.epoch !== before.epoch + 1) violation(id, `epoch ${before.epoch} became ${row.epoch}`)
    if (before.status !== 'running') {
      if (row.status !== before.status) violation(id, `${before.status} became ${row.status}`)
    } else if (row.status !== 'running') {
      if (!raised && known.holder !== by.name) violation(id, `I5: ${by.name} ended it, but ${known.holder} holds it`)
      known.holder = undefined
      own.add(id)
    } else if (raised) sawClaim(by, known, before)
    else if (row.owner !== before.owner && row.attempts < before.attempts && !by.closing) {
      // Otherwise a run that loses its worker again and again would be retried, and paid for, forever.
      violation(id, `${by.name} requeued it without counting the attempt, and continues`)
    } else if (
      row.leaseUntil < before.leaseUntil &&
      row.owner === before.owner &&
      row.owner !== by.name &&
      lives(row.owner!)
    )
      violation(id, `R7: ${by.name} ended a lease of ${row.owner}, which is alive`)
  }

  function sawClaim(by: Process, known: Recorded, { owner, leaseUntil }: RowState): void {
    const { row } = known
    if (row.owner !== by.name) violation(row.id, `${by.name} claimed it for ${row.owner}`)
    const leftMs = leaseUntil - scheduler.now
    if (owner !== null && leftMs > 0)
      violation(row.id, `R7: ${by.name} took a lease of ${owner} with ${leftMs} ms left`)
    known.holder = by.name
    known.claimedAt ??= scheduler.now
    checkRoom(row)
  }

  function sawEvent(by: Process, event: LoggedEvent & { readonly id: string }, own: ReadonlySet<string>): void {
    const { id, seq, type, data } = event
    const known = interactions.get(id)
    if (!known) {
      violation(id, 'an event of an unknown interaction')
      return
    }
    const { events, holder } = known
    if (seq !== events.length + 1) violation(id, `I1: event ${seq} after ${events.length}`)
    if (events.at(-1)?.type === 'completed') violation(id, `I2: ${type} after the end`)
    if (holder !== by.name && !own.has(id)) violation(id, `I5: ${by.name} wrote ${type}, but ${holder} holds it`)
    if (type === 'error') checkError(id, known, JSON.parse(data))
    events.push(event)
  }

  function sawGone(id: string): void {
    const known = interactions.get(id)!
    if (known.row.status === 'running') violation(id, 'it was removed while it ran')
    known.removed = true
  }

  /**
   * Checks that an error is not an internal one, and that a timeout is reported only after its time has passed in true
   * time.
   */
  function checkError(id: string, { acceptedAt, claimedAt }: Recorded, { message }: { message: string }): void {
    if (message.startsWith('Something went wrong in the server')) violation(id, message)
    const [, waitS] = /No worker was free within (\d+) s/.exec(message) ?? []
    const [, turnS] = /longer than policy.maxTurnDuration, (\d+) s/.exec(message) ?? []
    const [limitS, since] = waitS === undefined ? [turnS, claimedAt] : [waitS, acceptedAt]
    if (limitS === undefined) return
    const tookMs = scheduler.now - (since ?? scheduler.now)
    if (tookMs < Number(limitS) * 1_000 - 1) violation(id, `R7: after only ${tookMs} ms it failed with: ${message}`)
  }

  function checkTouched(by: Process, id: string): void {
    const known = interactions.get(id)
    if (!known || known.removed) return
    const { row, events } = known
    if (row.lastSeq !== events.length) violation(id, `I1: last_seq is ${row.lastSeq} with ${events.length} events`)
    const ended = events.at(-1)?.type === 'completed'
    if (ended !== (row.status !== 'running'))
      violation(id, `I2: ${row.status}, but the last event is ${events.at(-1)?.type}`)
    if (ended && row.status !== 'cancelled') {
      const standing = sandboxesOf(id, by)
      if (standing.length > 0) violation(id, `I7: ${row.status} with a sandbox on ${standing.join(', ')}`)
    }
  }

  /** Checks that a tool call takes effect once, after its `tool_call` event and before its `tool_result` event. */
  function once(id: string, key: string, what: string): void {
    const step = Number(key.slice('step-'.length))
    const events = interactions.get(id)?.events ?? []
    const intent = events.findIndex(({ type, data }) => type === 'tool_call' && JSON.parse(data).step === step)
    if (intent < 0) violation(id, `${what} ran before its intent was in the log`)
    const callId = intent < 0 ? undefined : JSON.parse(events[intent]!.data).callId
    if (
      events.slice(intent + 1).some(({ type, data }) => type === 'tool_result' && JSON.parse(data).callId === callId)
    ) {
      violation(id, `${what} ran again although its result is in the log`)
    }
    if (steps.has(`${id} ${what}`)) violation(id, `${what} ran twice`)
    steps.add(`${id} ${what}`)
  }

  return {
    violations,
    interactions,
    get commits() {
      return commits
    },
    violation,
    committed,
    ran(host, id, key) {
      once(id, key, `${key} ran`)
      if (cancelledAt.has(id))
        violation(id, `${key} ran on ${host} after the caller got the response to its cancel request`)
    },
    acted(by, id, epoch) {
      const first = actors.get(`${id} ${epoch}`) ?? by.name
      actors.set(`${id} ${epoch}`, first)
      if (first !== by.name) violation(id, `${first} and ${by.name} both act under epoch ${epoch}`)
    },
    effect(id, key) {
      once(id, key, `${key} had its effect`)
      if (cancelledAt.has(id))
        violation(id, `${key} had its effect after the caller got the response to its cancel request`)
    },
    told(id) {
      if (interactions.get(id)?.row.status === 'running')
        violation(id, 'a webhook reported an end before the run had ended')
    },
    acknowledged(id, idempotencyKey) {
      if (!interactions.has(id)) violation(id, 'I6: acknowledged but not stored')
      if (idempotencyKey === undefined) return
      const earlier = acknowledged.get(idempotencyKey) ?? new Set()
      acknowledged.set(idempotencyKey, earlier.add(id))
      // A key can be used again if its interaction was deleted or failed with a retryable error.
      const holders = [...earlier].filter((each) => {
        const known = interactions.get(each)
        return known && !known.removed && !mayBeRetried(known)
      })
      if (holders.length > 1) violation(id, `the idempotency key ${idempotencyKey} belongs to ${holders.join(', ')}`)
    },
    cancelled(id, by) {
      cancelledAt.add(id)
      const status = interactions.get(id)?.row.status
      if (status !== 'cancelled') violation(id, `the caller’s cancel request succeeded, but the status is ${status}`)
      const standing = new Set([...sandboxesOf(id, by), ...sandboxesOf(id)])
      if (standing.size > 0) violation(id, `cancelled, with a sandbox on ${[...standing].join(', ')}`)
    },
    shown(id, events) {
      const stored = interactions.get(id)?.events ?? []
      for (const { seq, type, data } of events) {
        const it = stored[seq - 1]
        if (!it) violation(id, `event ${seq} was shown before it was stored`)
        else if (it.type !== type || it.data !== data) violation(id, `I4: event ${seq} was shown with other content`)
      }
    },
  }
}
