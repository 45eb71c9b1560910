/**
 * The one writer of an interaction's log while it holds the claim.
 *
 * Events are numbered when they are written, so neighbouring fragments can join until then. One write is under way at a
 * time; what comes meanwhile goes with the next. Followers get events after the commit, never before: nothing is shown that
 * is not stored. A write that the database could not take is tried again for a while. A write that was undone ends the
 * recorder (`onStopped`): the claim is lost where it was the fence, and any other reason is a defect of ours. After a defect
 * the claim still holds, and `reopen` gives a recorder that can write the end.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { coalesce, type RunEvent, type Stage, type StoredEvent } from '../../domain/event.ts'
import type { Claim } from '../../store/claim-row.ts'
import { appendStatements, type Ending, endStatements, numberEvents, readProgress } from '../../store/events.ts'
import { type Database, type Statement, unexpectedFailure } from '../../store/port.ts'
import type { Emit } from '../../telemetry/events.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Hub } from '../hub.ts'

export interface RecorderOptions {
  readonly db: Database
  readonly hub: Hub
  readonly claim: Pick<Claim, 'id' | 'epoch' | 'lastSeq'>
  readonly stage: Stage
  readonly now: () => number
  readonly emit: Emit
  /** Nothing more will be written by this recorder: stop all work. Called once. */
  readonly onStopped: (cause: RecorderStop, error?: Error) => void
  readonly onPoint?: EngineDependencies['onPoint']
}

/**
 * Why a recorder stopped. `fenced`: another worker or a cancellation raised the epoch. `database`: it can't be reached.
 * `defect`: it refused a write of ours for another reason; the error names the statement.
 */
export type RecorderStop = 'fenced' | 'database' | 'defect'

/** A statement that belongs to the events before it; told the number of the last of them. */
export type Attachment = (lastSeq: number) => Statement

/** An attachment, and how many of the pending events stand before it. */
interface Placed {
  readonly behind: number
  readonly attachment: Attachment
}

/** Events that were numbered, and what is written with them. */
interface Batch {
  readonly events: readonly StoredEvent[]
  readonly statements: readonly Statement[]
}

/** A full disk may have room again soon: so long the database is asked again. Shorter than a lease. */
const PATIENCE_MS = 20_000
const RETRY_MS = 250

export interface Recorder {
  /** Adds an event; durable some time later. Ignored once the recorder has stopped or ended. */
  append(event: RunEvent): void
  /** Adds a statement that is written in the same transaction as what is pending now. */
  attach(attachment: Attachment): void
  /** Resolves when all so far is durable. Throws RecorderStopped. */
  flush(): Promise<void>
  /** Writes what is pending, the terminal events and the status in one transaction. Throws RecorderStopped. */
  end(ending: Omit<Ending, 'at'>): Promise<void>
  /** A recorder that goes on behind what is stored, without the batch that was refused. Undefined unless a defect stopped this one. */
  reopen(): Recorder | undefined
}

export class RecorderStopped extends Error {
  constructor() {
    super('The log of the interaction takes no more events from this worker.')
    this.name = 'RecorderStopped'
  }
}

export function createRecorder(options: RecorderOptions): Recorder {
  const { db, hub, claim, now, emit, onStopped, onPoint } = options
  let { stage } = options
  let { lastSeq } = claim
  let pending: RunEvent[] = []
  let attachments: Placed[] = []
  /** Sent, and no answer came: it may be written or not. */
  let unsettled: Batch | undefined
  let writing: Promise<void> | undefined
  let ending: Omit<Ending, 'at'> | undefined
  let stopped: RecorderStop | undefined

  function stop(cause: RecorderStop, error?: Error): void {
    if (stopped) return
    stopped = cause
    onStopped(cause, error)
  }

  /** What is pending, as one transaction; asked for when the database is ready to take it. */
  function takePending(): Batch {
    const fence = { id: claim.id, epoch: claim.epoch, lastSeq }
    const events = numberEvents(pending, lastSeq)
    const extra = attachments.map(({ behind, attachment }) => attachment(lastSeq + behind))
    pending = []
    attachments = []
    const main = ending
      ? endStatements(db, fence, events, { ...ending, at: now() })
      : appendStatements(db, fence, events, stage, now())
    return { events, statements: [...main, ...extra] }
  }

  /**
   * Rejects where the database could not take the batch, or its answer got lost. Then the very same batch is sent again: if
   * it was written after all, the fence refuses it, and the row tells that the numbers up to its last one are ours.
   */
  async function writeBatch(): Promise<void> {
    const again = unsettled !== undefined
    onPoint?.('before-write')
    const result = await db.write(() => {
      unsettled ??= takePending()
      return unsettled.statements
    })
    const { events } = unsettled!
    if (!result.ok) {
      if (result.reason !== 'fence') return stop('defect', unexpectedFailure(result))
      if (!again || !(await isAt(lastSeq + events.length))) return stop('fenced')
    }
    unsettled = undefined
    onPoint?.('after-write')
    lastSeq += events.length
    hub.publish(claim.id, events)
    emit({ type: 'events_stored', count: events.length })
  }

  /** Whether the log has that many events and nobody but us wrote them: whoever else may write raises the epoch. */
  async function isAt(seq: number): Promise<boolean> {
    const row = await readProgress(db, claim.id)
    return row?.epoch === claim.epoch && row.lastSeq === seq
  }

  async function writeAll(): Promise<void> {
    let giveUpAt: number | undefined
    while (!stopped && (unsettled || pending.length > 0 || attachments.length > 0)) {
      try {
        await writeBatch()
        giveUpAt = undefined
      } catch (error) {
        giveUpAt ??= performance.now() + PATIENCE_MS
        if (performance.now() > giveUpAt) stop('database', error as Error)
        // A process that has closed everything else does not wait for it.
        else await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    writing = undefined
  }

  function schedule(): void {
    // Once it has stopped there is nothing to write, and a `writeAll` that is over at once would stay under way forever.
    if (!stopped) writing ??= writeAll()
  }

  async function flush(): Promise<void> {
    while (writing) await writing
    if (stopped) throw new RecorderStopped()
  }

  return {
    append(event) {
      if (stopped || ending) return
      if (event.type === 'stage') stage = event.stage
      const last = pending.at(-1)
      const joined = last && coalesce(last, event)
      if (joined) pending[pending.length - 1] = joined
      else pending.push(event)
      schedule()
    },
    attach(attachment) {
      if (stopped || ending) return
      attachments.push({ behind: pending.length, attachment })
      schedule()
    },
    flush,
    async end(how) {
      ending = how
      pending.push(...how.events)
      schedule()
      await flush()
    },
    reopen() {
      return stopped === 'defect' ? createRecorder({ ...options, claim: { ...claim, lastSeq }, stage }) : undefined
    },
  }
}
