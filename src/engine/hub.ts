/**
 * Tells followers in this process what was just committed. A hint and a shortcut, never the truth: a follower that
 * misses something, or gets it out of order, reads the log.
 */
import type { StoredEvent } from '../domain/event.ts'

type Listener = (events: readonly StoredEvent[]) => void

export interface Hub {
  publish(interactionId: string, events: readonly StoredEvent[]): void
  /** Returns the way to stop listening. */
  subscribe(interactionId: string, listener: Listener): () => void
}

export function createHub(): Hub {
  const listeners = new Map<string, Set<Listener>>()
  return {
    publish(interactionId, events) {
      for (const listener of listeners.get(interactionId) ?? []) listener(events)
    },
    subscribe(interactionId, listener) {
      const set = listeners.get(interactionId) ?? new Set()
      listeners.set(interactionId, set)
      set.add(listener)
      return () => {
        set.delete(listener)
        if (set.size === 0) listeners.delete(interactionId)
      }
    },
  }
}
