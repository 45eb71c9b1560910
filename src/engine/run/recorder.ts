/**
 * The one writer of an interaction's log while it holds the claim.
 *
 * Events are numbered when they are written, so adjacent fragments can be joined until then. One write is under way at a time;
 * later events go into the next one. Followers get events only after the commit. A write that fails because the database is
 * unavailable is retried for a while. A refused write stops the recorder (`onStopped`): if the fence refused it, the claim is
 * lost; any other reason is a bug in Errand. After a bug the claim is still valid, and `reopen` returns a recorder that can
 * write the end.
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
  /** Called once, when this recorder can write no more. The run must stop. */
  readonly onStopped: (cause: RecorderStop, error?: Error) => void
  readonly onPoint?: EngineDependencies['onPoint']
}

/**
 * Why a recorder stopped. `fenced`: another worker or a cancellation raised the epoch. `database`: the database was
 * unavailable for too long. `defect`: it refused a write for another reason; the error names the statement.
 */
export type RecorderStop = 'fenced' | 'database' | 'defect'

/** A statement that belongs to the events before it; called with the number of the last of them. */
export type Attachment = (lastSeq: number) => Statement

/** An attachment, and the number of pending events before it. */
interface Placed {
  readonly behind: number
  readonly attachment: Attachment
}

/** Numbered events, and the statements that are written with them. */
interface Batch {
  readonly events: readonly StoredEvent[]
  readonly statements: readonly Statement[]
}

/** Retry period for an unavailable database, such as a full disk. Shorter than a lease. */
const PATIENCE_MS = 20_000
const RETRY_MS = 250

export interface Recorder {
  /** Adds events, which are written soon, in one transaction. Ignored once the recorder has stopped or ended. */
  append(events: RunEvent | readonly RunEvent[]): void
  /** Adds a statement that is written in the same transaction as the pending events, or as the next ones. */
  attach(attachment: Attachment, when?: 'now' | 'with the next events'): void
  /** Resolves when all events so far are durable. Throws RecorderStopped. */
  flush(): Promise<void>
  /** Writes the pending events, the terminal events and the status in one transaction. Throws RecorderStopped. */
  end(ending: Omit<Ending, 'at'>): Promise<void>
  /** Returns a recorder that continues after the stored events, without the refused batch. Undefined unless a defect stopped this one. */
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
  /** The batch that was sent without an answer. It may or may not be written. */
  let unsettled: Batch | undefined
  let writing: Promise<void> | undefined
  let ending: Omit<Ending, 'at'> | undefined
  let stopped: RecorderStop | undefined

  function stop(cause: RecorderStop, error?: Error): void {
    if (stopped) return
    stopped = cause
    onStopped(cause, error)
  }

  /** Takes everything pending as one transaction. Called when the database is ready for it. */
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
   * Rejects if the database was unavailable or its answer got lost. Then the same batch is sent again. If it was written after
   * all, the fence refuses it, and the row shows that the events are ours.
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

  /** True if the log ends at `seq` and only this claim wrote to it: any other writer raises the epoch. */
  async function isAt(seq: number): Promise<boolean> {
    const row = await readProgress(db, claim.id)
    return row?.epoch === claim.epoch && row.lastSeq === seq
  }

  function hasWork(): boolean {
    return unsettled !== undefined || pending.length > 0 || attachments.length > 0
  }

  async function writeAll(): Promise<void> {
    let giveUpAt: number | undefined
    while (!stopped && hasWork()) {
      try {
        await writeBatch()
        giveUpAt = undefined
      } catch (error) {
        giveUpAt ??= performance.now() + PATIENCE_MS
        if (performance.now() > giveUpAt) stop('database', error as Error)
        // `ref: false`: the retry does not keep a closing process alive.
        else await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    writing = undefined
  }

  function schedule(): void {
    // With nothing to write, `writeAll` would return at once, before `writing` is assigned, and seem to be under way forever.
    if (!stopped && hasWork()) writing ??= writeAll()
  }

  async function flush(): Promise<void> {
    while (writing) await writing
    if (stopped) throw new RecorderStopped()
  }

  return {
    append(events) {
      if (stopped || ending) return
      for (const event of [events].flat()) {
        if (event.type === 'stage') stage = event.stage
        const last = pending.at(-1)
        const joined = last && coalesce(last, event)
        if (joined) pending[pending.length - 1] = joined
        else pending.push(event)
      }
      schedule()
    },
    attach(attachment, when = 'now') {
      if (stopped || ending) return
      attachments.push({ behind: pending.length, attachment })
      if (when === 'now') schedule()
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
