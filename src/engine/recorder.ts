/**
 * The one writer of an interaction's log while it holds the claim.
 *
 * Events are numbered when they are written, so neighbouring fragments can join until then. One write is under way at a
 * time; what comes meanwhile goes with the next. Followers are told after the commit, never before: nothing is shown that
 * is not stored. A write that finds the fence broken ends
 * the recorder (`onLost`); one that the database could not take is tried again for a while.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { coalesce, type RunEvent, type Stage, type StoredEvent } from '../domain/event.ts'
import type { Claim } from '../store/claims.ts'
import { appendStatements, type Ending, endStatements, numberEvents } from '../store/events.ts'
import type { Database, Statement } from '../store/port.ts'
import type { Observe } from '../telemetry/moments.ts'
import type { Hub } from './hub.ts'
import type { EngineParts } from './parts.ts'

export interface RecorderOptions {
  readonly db: Database
  readonly hub: Hub
  readonly claim: Pick<Claim, 'id' | 'epoch' | 'lastSeq'>
  readonly stage: Stage
  readonly now: () => number
  readonly observe: Observe
  /** The claim is not ours any more, or the database can't be written: stop all work. Called once. */
  readonly onLost: (cause: 'fenced' | 'database', error?: Error) => void
  readonly onPoint?: EngineParts['onPoint']
}

/** A statement that belongs to the events before it; told the number of the last of them. */
export type Attachment = (lastSeq: number) => Statement

/** An attachment, and how many of the pending events stand before it. */
interface Placed {
  readonly behind: number
  readonly attachment: Attachment
}

interface Taken {
  readonly pending: readonly RunEvent[]
  readonly attachments: readonly Placed[]
  readonly events: StoredEvent[]
  readonly statements: Statement[]
}

/** A full disk may have room again soon: so long the database is asked again. Shorter than a lease. */
const PATIENCE_MS = 20_000
const RETRY_MS = 250

export interface Recorder {
  /** Adds an event; durable some time later. Ignored once the recorder is lost or ended. */
  append(event: RunEvent): void
  /** Adds a statement that is written in the same transaction as what is pending now. */
  attach(attachment: Attachment): void
  /** Resolves when all so far is durable. Throws RecorderLost. */
  flush(): Promise<void>
  /** Writes what is pending, the terminal events and the status in one transaction. Throws RecorderLost. */
  end(ending: Omit<Ending, 'at'>): Promise<void>
}

export class RecorderLost extends Error {
  constructor() {
    super('This worker lost the right to write the interaction.')
    this.name = 'RecorderLost'
  }
}

export function createRecorder(options: RecorderOptions): Recorder {
  const { db, hub, claim, now, observe, onLost, onPoint } = options
  let { stage } = options
  let { lastSeq } = claim
  let pending: RunEvent[] = []
  let attachments: Placed[] = []
  let giveUpAt = Number.POSITIVE_INFINITY
  let writing: Promise<void> | undefined
  let ending: Omit<Ending, 'at'> | undefined
  let lost = false

  function lose(cause: 'fenced' | 'database', error?: Error): void {
    if (lost) return
    lost = true
    onLost(cause, error)
  }

  /** What is pending, as one transaction; asked for when the database is ready to take it. */
  function takePending(): Taken {
    const fence = { id: claim.id, epoch: claim.epoch, lastSeq }
    const events = numberEvents(pending, lastSeq)
    const taken = { pending, attachments }
    const extra = attachments.map(({ behind, attachment }) => attachment(lastSeq + behind))
    pending = []
    attachments = []
    const main = ending
      ? endStatements(db, fence, events, { ...ending, at: now() })
      : appendStatements(db, fence, events, stage, now())
    return { ...taken, events, statements: [...main, ...extra] }
  }

  /** What was taken and could not be written, to be written before anything newer. */
  function putBack(taken: Taken): void {
    pending = [...taken.pending, ...pending]
    attachments = [
      ...taken.attachments,
      ...attachments.map(({ behind, attachment }) => ({ behind: behind + taken.pending.length, attachment })),
    ]
  }

  /** False where the database could not take it. */
  async function writePending(): Promise<boolean> {
    let taken: Taken | undefined
    onPoint?.('before-write')
    try {
      const result = await db.write(() => {
        taken = takePending()
        return taken.statements
      })
      if (!result.ok) lose('fenced')
      else if (taken) {
        onPoint?.('after-write')
        lastSeq += taken.events.length
        hub.publish(claim.id, taken.events)
        observe({ type: 'events_stored', count: taken.events.length })
      }
      return true
    } catch (error) {
      if (taken) putBack(taken)
      if (performance.now() > giveUpAt) lose('database', error as Error)
      return false
    }
  }

  async function writeAll(): Promise<void> {
    while (!lost && (pending.length > 0 || attachments.length > 0)) {
      if (await writePending()) giveUpAt = Number.POSITIVE_INFINITY
      else {
        if (giveUpAt === Number.POSITIVE_INFINITY) giveUpAt = performance.now() + PATIENCE_MS
        await delay(RETRY_MS)
      }
    }
    writing = undefined
  }

  function schedule(): void {
    writing ??= writeAll()
  }

  async function flush(): Promise<void> {
    while (writing) await writing
    if (lost) throw new RecorderLost()
  }

  return {
    append(event) {
      if (lost || ending) return
      if (event.type === 'stage') stage = event.stage
      const last = pending.at(-1)
      const joined = last && coalesce(last, event)
      if (joined) pending[pending.length - 1] = joined
      else pending.push(event)
      schedule()
    },
    attach(attachment) {
      if (lost || ending) return
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
  }
}
