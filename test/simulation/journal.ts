/**
 * What truly happened in a simulated world, told by the world itself rather than by the engine; and the judge: what must
 * never happen is a violation the moment it does.
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
  /** Who holds the epoch: a node's name; undefined where nobody does. */
  holder: string | undefined
  readonly events: LoggedEvent[]
  removed: boolean
  /** In true time. */
  readonly acceptedAt: number
  claimedAt: number | undefined
}

export interface Journal {
  readonly violations: readonly string[]
  readonly interactions: ReadonlyMap<string, Recorded>
  readonly commits: number
  violation(id: string, what: string): void
  /** Of a transaction that was made. */
  committed(by: Process, seen: readonly Witnessed[]): void
  /** A step began to run in a sandbox. */
  ran(host: string, id: string, key: string): void
  /** A worker used a sandbox. */
  acted(by: Process, id: string, epoch: number): void
  /** A tool whose effect is outside of every sandbox had it. */
  effect(id: string, key: string): void
  /** A receiver was told of the end. */
  told(id: string): void
  /** A caller heard that it was accepted. */
  acknowledged(id: string, idempotencyKey: string | undefined): void
  /** A caller heard from that node that it was cancelled. */
  cancelled(id: string, by: Process): void
  /** A follower was shown these. */
  shown(id: string, events: readonly LoggedEvent[]): void
}

export interface JournalOptions {
  readonly scheduler: Scheduler
  readonly runningPerProject: number
  /** Names of the hosts on which the interaction has a sandbox now; of this node's machine alone, where one is given. */
  readonly sandboxesOf: (id: string, node?: Process) => readonly string[]
}

export function createJournal({ scheduler, runningPerProject, sandboxesOf }: JournalOptions): Journal {
  const violations: string[] = []
  const interactions = new Map<string, Recorded>()
  const idempotent = new Map<string, string>()
  const steps = new Set<string>()
  const actors = new Map<string, string>()
  const cancelledAt = new Set<string>()
  let commits = 0

  function violation(id: string, what: string): void {
    violations.push(`${what} (${id})`)
    scheduler.note('VIOLATION', `${what} (${id})`)
  }

  /** Who may write events in this transaction beside the holder: who made the interaction in it, or ended it from outside. */
  function rowChanged(by: Process, { row }: Recorded, after: RowState): { holder: string | undefined; ends: boolean } {
    const { id } = after
    if (row.status !== 'running' && after.status !== row.status) violation(id, `${row.status} became ${after.status}`)
    const raised = after.epoch !== row.epoch
    if (raised && after.epoch !== row.epoch + 1) violation(id, `epoch ${row.epoch} became ${after.epoch}`)
    const ends = after.status !== 'running' && row.status === 'running'
    const holder = interactions.get(id)!.holder
    if (!raised) {
      if (ends && holder !== by.name) violation(id, `I5: ${by.name} ended it, and ${holder} holds it`)
      return { holder: ends ? undefined : holder, ends: false }
    }
    if (ends) return { holder: undefined, ends: true }
    if (after.owner !== by.name) violation(id, `${by.name} claimed it for ${after.owner}`)
    if (row.owner !== null && row.leaseUntil > scheduler.now) {
      violation(id, `R7: ${by.name} took a lease of ${row.owner} that had ${row.leaseUntil - scheduler.now} ms left`)
    }
    return { holder: after.owner ?? undefined, ends: false }
  }

  /** Those that wait for a person take no room, and may go on when there is none. */
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
      violation(id, `claimed beside ${others.length} of ${projectId} that run, ${runningPerProject} may`)
    }
  }

  function committed(by: Process, seen: readonly Witnessed[]): void {
    commits++
    const touched = new Set<string>()
    const free = new Set<string>()
    for (const it of seen) {
      if (it.kind === 'gone') {
        const known = interactions.get(it.id)!
        if (known.row.status === 'running') violation(it.id, 'it was removed while it ran')
        known.removed = true
      } else if (it.kind === 'row') {
        const { after } = it
        touched.add(after.id)
        const known = interactions.get(after.id)
        if (!known) {
          const at = { acceptedAt: scheduler.now, claimedAt: undefined }
          interactions.set(after.id, { row: after, holder: undefined, events: [], removed: false, ...at })
          free.add(after.id)
          continue
        }
        const { holder, ends } = rowChanged(by, known, after)
        if (ends) free.add(after.id)
        const claimed = after.epoch !== known.row.epoch && !ends
        // The events of the same transaction are its own, though it gave the epoch up with them.
        if (!ends && holder === undefined && known.holder === by.name) free.add(after.id)
        known.holder = holder
        known.row = after
        if (claimed) {
          known.claimedAt ??= scheduler.now
          checkRoom(after)
        }
      } else {
        const known = interactions.get(it.id)
        if (!known) {
          violation(it.id, 'an event of no interaction')
          continue
        }
        if (it.seq !== known.events.length + 1) violation(it.id, `I1: event ${it.seq} behind ${known.events.length}`)
        if (known.events.at(-1)?.type === 'completed') violation(it.id, `I2: ${it.type} behind the end`)
        if (known.holder !== by.name && !free.has(it.id)) {
          violation(it.id, `I5: ${by.name} wrote ${it.type}, and ${known.holder} holds it`)
        }
        if (it.type === 'error') checkError(it.id, known, JSON.parse(it.data))
        known.events.push(it)
        touched.add(it.id)
      }
    }
    for (const id of touched) checkTouched(by, id)
  }

  /** A failure must not be a bug's; and where it is for want of time, the time must be over, whatever the clock of who says so. */
  function checkError(id: string, { acceptedAt, claimedAt }: Recorded, { message }: { message: string }): void {
    if (message.startsWith('Something went wrong in the server')) violation(id, message)
    const [, waitS] = /No worker was free within (\d+) s/.exec(message) ?? []
    const [, turnS] = /longer than policy.maxTurnDuration, (\d+) s/.exec(message) ?? []
    const [limitS, since] = waitS === undefined ? [turnS, claimedAt] : [waitS, acceptedAt]
    if (limitS === undefined) return
    const tookMs = scheduler.now - (since ?? scheduler.now)
    if (tookMs < Number(limitS) * 1_000 - 1) violation(id, `R7: after ${tookMs} ms it says: ${message}`)
  }

  function checkTouched(by: Process, id: string): void {
    const { row, events, removed } = interactions.get(id)!
    if (removed) return
    if (row.lastSeq !== events.length) violation(id, `I1: last_seq is ${row.lastSeq} with ${events.length} events`)
    const ended = events.at(-1)?.type === 'completed'
    if (ended !== (row.status !== 'running')) violation(id, `I2: ${row.status} with ${events.at(-1)?.type} last`)
    if (ended && row.status !== 'cancelled') {
      const standing = sandboxesOf(id, by)
      if (standing.length > 0) violation(id, `I7: ${row.status} with a sandbox on ${standing.join(', ')}`)
    }
  }

  /** What is done for a tool call: behind its intent, before its result, once. */
  function once(id: string, key: string, what: string): void {
    const step = Number(key.slice('step-'.length))
    const events = interactions.get(id)?.events ?? []
    const intent = events.findIndex(({ type, data }) => type === 'tool_call' && JSON.parse(data).step === step)
    if (intent < 0) violation(id, `${what} before its intent was in the log`)
    // A turn's calls are made one after another, so the next result behind an intent is its own.
    if (events.slice(intent + 1).some(({ type }) => type === 'tool_result')) {
      violation(id, `${what} again, though its result is in the log`)
    }
    if (steps.has(`${id} ${what}`)) violation(id, `${what} twice`)
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
      if (cancelledAt.has(id)) violation(id, `${key} ran on ${host} after the caller heard that it was cancelled`)
    },
    acted(by, id, epoch) {
      const first = actors.get(`${id} ${epoch}`) ?? by.name
      actors.set(`${id} ${epoch}`, first)
      if (first !== by.name) violation(id, `${first} and ${by.name} both act under epoch ${epoch}`)
    },
    effect(id, key) {
      once(id, key, `${key} had its effect`)
      if (cancelledAt.has(id)) violation(id, `${key} had its effect after the caller heard that it was cancelled`)
    },
    told(id) {
      if (interactions.get(id)?.row.status === 'running') violation(id, 'a webhook told of an end that was none')
    },
    acknowledged(id, idempotencyKey) {
      if (!interactions.has(id)) violation(id, 'I6: acknowledged, and not stored')
      if (idempotencyKey === undefined) return
      const first = idempotent.get(idempotencyKey) ?? id
      const forgotten = interactions.get(first)?.removed === true
      idempotent.set(idempotencyKey, forgotten ? id : first)
      if (first !== id && !forgotten) violation(id, `the idempotency key ${idempotencyKey} stands for ${first} already`)
    },
    cancelled(id, by) {
      cancelledAt.add(id)
      const status = interactions.get(id)?.row.status
      if (status !== 'cancelled') violation(id, `the caller heard that it was cancelled, and it is ${status}`)
      const standing = sandboxesOf(id, by)
      if (standing.length > 0) violation(id, `cancelled, with a sandbox on ${standing.join(', ')}`)
    },
    shown(id, events) {
      const stored = interactions.get(id)?.events ?? []
      for (const { seq, type, data } of events) {
        const it = stored[seq - 1]
        if (!it) violation(id, `event ${seq} was shown before it was stored`)
        else if (it.type !== type || it.data !== data) violation(id, `I4: event ${seq} was shown as another one`)
      }
    },
  }
}
