/**
 * Virtual time, and the single queue of all events in a simulated world. Between two events, every promise runs as far
 * as it can, so the seed alone determines what happens.
 *
 * Each event belongs to a process: a node, a client, a sandbox host, or the database server. Events of a dead process
 * are dropped. Events of a paused process wait until it resumes, as with SIGSTOP and SIGCONT.
 */
// The real setImmediate, because runtime.ts replaces the global one.
import { setImmediate } from 'node:timers'
import type { Random } from '../support/prove.ts'

export interface Process {
  readonly name: string
  state: 'running' | 'paused' | 'dead'
  /** Offset of the process's wall clock from true time, in milliseconds. */
  skewMs: number
  /**
   * When the process last failed to renew its leases in time. It then stops its runs, because others may claim them.
   */
  lateAt?: number
  /** Whether a planned shutdown has begun. */
  closing?: boolean
}

export interface Pending {
  cancel(): void
}

/** A line in the record of decisions. */
export interface Decision {
  readonly at: number
  readonly who: string
  readonly what: string
}

export interface Scheduler {
  readonly random: Random
  /** True time, in milliseconds since 1970, with fractions. */
  readonly now: number
  /** The process whose event is running. */
  readonly current: Process | undefined
  readonly decisions: readonly Decision[]
  /** Hash of all decisions so far. Two runs with the same hash took the same course. */
  readonly hash: number
  schedule(owner: Process, inMs: number, what: string, run: () => void): Pending
  /** Resolves in an event of the owner. */
  sleep(owner: Process, ms: number, what: string): Promise<void>
  /** Resumes a paused process. Its delayed events run now, in random order. */
  resume(process: Process): void
  /** Returns true with the probability `of`, between 0 and 1. */
  chance(of: number): boolean
  /** Records a decision that was made outside the queue. */
  note(who: string, what: string): void
  /** Runs the next event. Returns false if there is none until the time `until`. */
  step(until: number): Promise<boolean>
}

interface Event {
  at: number
  tie: number
  readonly owner: Process
  readonly what: string
  run: (() => void) | undefined
}

/** Start of every world: noon on a Tuesday. */
const BEGINNING = Date.UTC(2030, 0, 1, 12)

export function createScheduler(random: Random): Scheduler {
  const queue = createQueue()
  const decisions: Decision[] = []
  const held = new Map<Process, Event[]>()
  let now = BEGINNING
  let current: Process | undefined
  let hash = 2_166_136_261

  function note(who: string, what: string): void {
    decisions.push({ at: now - BEGINNING, who, what })
    const line = `${now} ${who} ${what}`
    for (let i = 0; i < line.length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 16_777_619)
  }

  function schedule(owner: Process, inMs: number, what: string, run: () => void): Pending {
    const event: Event = { at: now + Math.max(0, inMs), tie: random.next(), owner, what, run }
    queue.push(event)
    return {
      cancel() {
        event.run = undefined
      },
    }
  }

  return {
    random,
    get now() {
      return now
    },
    get current() {
      return current
    },
    decisions,
    get hash() {
      return hash >>> 0
    },
    schedule,
    sleep: (owner, ms, what) => new Promise((resolve) => schedule(owner, ms, what, resolve)),
    resume(process) {
      process.state = 'running'
      for (const event of held.get(process) ?? []) queue.push(Object.assign(event, { at: now, tie: random.next() }))
      held.delete(process)
    },
    chance: (of) => random.next() < of,
    note,
    async step(until) {
      for (;;) {
        const event = queue.pop(until)
        if (!event) return false
        if (!event.run || event.owner.state === 'dead') continue
        now = Math.max(now, event.at)
        if (event.owner.state === 'paused') {
          held.set(event.owner, [...(held.get(event.owner) ?? []), event])
          continue
        }
        note(event.owner.name, event.what)
        current = event.owner
        event.run()
        // Node runs all microtasks and ticks before this callback.
        await new Promise((resolve) => setImmediate(resolve))
        current = undefined
        return true
      }
    },
  }
}

/** A binary heap ordered by time. Events of the same time are in random order. */
function createQueue() {
  const heap: Event[] = []
  const before = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.tie < b.tie)

  function swap(i: number, j: number): void {
    const event = heap[i]!
    heap[i] = heap[j]!
    heap[j] = event
  }

  function sink(from: number): void {
    for (let i = from; ; ) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && before(heap[child]!, heap[least]!)) least = child
      }
      if (least === i) return
      swap(i, least)
      i = least
    }
  }

  return {
    push(event: Event): void {
      heap.push(event)
      for (let i = heap.length - 1; i > 0; ) {
        const parent = (i - 1) >> 1
        if (!before(heap[i]!, heap[parent]!)) return
        swap(i, parent)
        i = parent
      }
    },
    /** Returns undefined if the first event is later than `until`. */
    pop(until: number): Event | undefined {
      const first = heap[0]
      if (!first || first.at > until) return undefined
      const last = heap.pop()!
      if (heap.length > 0) {
        heap[0] = last
        sink(0)
      }
      return first
    },
  }
}
