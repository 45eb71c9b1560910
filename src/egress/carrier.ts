/** Bytes carried for a sandbox: counted against its budget, both ways together, and ended when none come any more. */
import { type Duplex, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Budget } from './port.ts'

const MAX_LISTENERS = 30

export interface Carrier {
  /** Passes bytes on and counts them; fails when the budget is spent. */
  meter(): Transform
  /** Both ways, until both have ended or one breaks. */
  both(client: Duplex, upstream: Duplex): Promise<void>
  /** Ends the connection when no byte came or went on it for the idle time. */
  watch(connection: Duplex): void
}

export function createCarrier(budget: Budget, idleMs: number): Carrier {
  function meter(): Transform {
    return new Transform({
      transform(chunk: Buffer, _encoding, callback) {
        budget.bytes -= chunk.length
        if (budget.bytes < 0) callback(new Error(budget.spent))
        else callback(null, chunk)
      },
    })
  }

  return {
    meter,
    async both(client, upstream) {
      // Each pipeline hears on both of them in several ways.
      for (const stream of [client, upstream]) stream.setMaxListeners(MAX_LISTENERS)
      try {
        await Promise.all([pipeline(client, meter(), upstream), pipeline(upstream, meter(), client)])
      } finally {
        client.destroy()
        upstream.destroy()
      }
    },
    watch(connection) {
      const timer = setTimeout(() => connection.destroy(), idleMs)
      const alive = () => timer.refresh()
      // What is pushed in and what is written out: the stream's own methods see both, whoever reads it.
      const { push, write } = connection
      connection.push = (...bytes: Parameters<Duplex['push']>) => {
        alive()
        return push.apply(connection, bytes)
      }
      connection.write = ((...bytes: Parameters<Duplex['write']>) => {
        alive()
        return write.apply(connection, bytes)
      }) as Duplex['write']
      connection.once('close', () => clearTimeout(timer))
    },
  }
}
