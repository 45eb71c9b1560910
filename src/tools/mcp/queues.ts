/** Of the work under one name, one at a time. */

export type Exclusively = <T>(work: () => Promise<T>) => Promise<T>

export interface Queues {
  of(name: string): Exclusively
}

export function createQueues(): Queues {
  const tails = new Map<string, Promise<unknown>>()
  return {
    of: (name) => async (work) => {
      const before = tails.get(name)
      const mine = (async () => {
        await before?.catch(() => {})
        return work()
      })()
      tails.set(name, mine)
      try {
        return await mine
      } finally {
        if (tails.get(name) === mine) tails.delete(name)
      }
    },
  }
}
