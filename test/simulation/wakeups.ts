/** Simulated wake-ups between nodes, an implementation of src/store/wakeups.ts. They can be delayed or lost. */
import type { Wakeups } from '../../src/store/wakeups.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface HintExchange {
  /** Connects one node to the others. */
  connect(node: Process): Wakeups
}

export function createHintExchange({ scheduler, odds }: { scheduler: Scheduler; odds: Odds }): HintExchange {
  const listeners = new Map<Process, (topic: string | undefined) => void>()
  return {
    connect: (node) => ({
      send(topic) {
        for (const [other, hear] of listeners) {
          if (other === node || scheduler.chance(odds.hintsLost)) continue
          scheduler.schedule(other, scheduler.random.next() * 20, `hears of ${topic}`, () => hear(topic))
        }
      },
      listen(hear) {
        listeners.set(node, hear)
      },
      async close() {
        listeners.delete(node)
      },
    }),
  }
}
