/**
 * Tells those who wait in this process what was just committed, here or on another node. A hint and a shortcut, never the
 * truth: who misses something, or gets it out of order, reads the database.
 */
import type { StoredEvent } from '../domain/event.ts'
import { NO_WAKEUPS, type Wakeups } from '../store/wakeups.ts'

/** No events: there is something to read, written on another node or not an event. */
type Listener = (events: readonly StoredEvent[]) => void

/** An interaction's id, or WORK. */
type Topic = string

/** Interactions wait to be claimed. */
export const WORK: Topic = 'work'

export interface Hub {
  publish(topic: Topic, events: readonly StoredEvent[]): void
  /** Returns the way to stop listening. */
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
