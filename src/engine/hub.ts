/**
 * Publishes commits of this process and of other nodes to subscribers in this process. These are hints: a subscriber that
 * misses one, or gets it out of order, reads the database.
 */
import type { StoredEvent } from '../domain/event.ts'
import { NO_WAKEUPS, type Wakeups } from '../store/wakeups.ts'

/** Called without events if there is something to read: written on another node, or not an event. */
type Listener = (events: readonly StoredEvent[]) => void

/** An interaction's id, or WORK. */
type Topic = string

/** The topic for queued interactions. */
export const WORK: Topic = 'work'

export interface Hub {
  publish(topic: Topic, events: readonly StoredEvent[]): void
  /** Returns the function that unsubscribes. */
  subscribe(topic: Topic, listener: Listener): () => void
}

export function createHub(wakeups: Wakeups = NO_WAKEUPS): Hub {
  const listeners = new Map<Topic, Set<Listener>>()
  wakeups.listen((topic) => {
    for (const each of topic === undefined ? [...listeners.keys()] : [topic]) tell(each, [])
  })

  function tell(topic: Topic, events: readonly StoredEvent[]): void {
    for (const listener of listeners.get(topic) ?? []) listener(events)
  }

  return {
    publish(topic, events) {
      tell(topic, events)
      wakeups.send(topic)
    },
    subscribe(topic, listener) {
      const set = listeners.get(topic) ?? new Set()
      listeners.set(topic, set)
      set.add(listener)
      return () => {
        set.delete(listener)
        if (set.size === 0) listeners.delete(topic)
      }
    },
  }
}
