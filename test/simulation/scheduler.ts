/**
 * Virtual time, and the one order in which everything of a simulated world happens. All that a world does is an event
 * on this queue; between two events every promise has run as far as it can, so the seed alone says what happens.
 *
 * An event belongs to a process: a node, a client, a sandbox host, the database's server. That of a dead process never
 * happens again; that of a paused one waits until it goes on, as after SIGSTOP and SIGCONT.
 */
// The real one, whatever stands in its place globally.
import { setImmediate } from 'node:timers'
import type { Random } from '../support/prove.ts'

export interface Process {
  readonly name: string
  state: 'running' | 'paused' | 'dead'
  /** What its wall clock is ahead of true time, milliseconds. */
  skewMs: number
  /** When it last could not renew its leases in time: then it stops what it has, as others may take that. */
  lateAt?: number
  /** A shutdown of it was planned and has begun. */
  closing?: boolean
}

export interface Pending {
  cancel(): void
}

/** One line of what was decided. */
export interface Decision {
  readonly at: number
  readonly who: string
  readonly what: string
}

export interface Scheduler {
  readonly random: Random
  /** True time, milliseconds since 1970, with fractions. */
  readonly now: number
  /** Whose event is happening. */
  readonly current: Process | undefined
  readonly decisions: readonly Decision[]
  /** A number for all decisions so far: two runs with the same one went the same way. */
  readonly hash: number
  schedule(owner: Process, inMs: number, what: string, run: () => void): Pending
  /** Resolves in the owner's own time. */
  sleep(owner: Process, ms: number, what: string): Promise<void>
  /** What a paused process missed happens now, in any order. */
  resume(process: Process): void
  /** True by chance, `of` in 1. */
  chance(of: number): boolean
  /** Notes what was decided outside of the queue. */
  note(who: string, what: string): void
  /** Runs what is next; false where nothing is left, or it would be after `until`. */
  step(until: number): Promise<boolean>
}

interface Event {
  at: number
  tie: number
  readonly owner: Process
  readonly what: string
  run: (() => void) | undefined
}

/** Noon of a Tuesday. */
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
        // Every microtask and every tick of Node's runs before this comes.
        await new Promise((resolve) => setImmediate(resolve))
        current = undefined
        return true
      }
    },
  }
}

/** A binary heap by time; chance orders what comes at the same time. */
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
    /** Undefined where the first is later than `until`. */
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
