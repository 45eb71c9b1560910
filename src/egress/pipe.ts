/** Bytes carried for a sandbox: counted against its budget, both ways together, and ended when none come any more. */
import { type Duplex, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Budget } from './port.ts'
import { Refusal } from './proxy-messages.ts'

const MAX_LISTENERS = 30

export interface Pipe {
  /** Passes bytes on and counts them; fails when the budget is spent. */
  meter(): Transform
  /** Counts every byte that is read from the connection or written to it, and ends it when the budget is spent. */
  count(connection: Duplex): void
  /** Both ways, until both have ended or one breaks. */
  both(client: Duplex, upstream: Duplex): Promise<void>
  /** Ends the connection when no byte came or went on it for the idle time. */
  watch(connection: Duplex): void
}

export function createPipe(budget: Budget, idleMs: number): Pipe {
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
    count(connection) {
      onBytes(connection, (bytes) => {
        budget.bytes -= bytes
        if (budget.bytes < 0) connection.destroy(new Refusal(403, budget.spent))
      })
    },
    watch(connection) {
      const timer = setTimeout(() => connection.destroy(), idleMs)
      onBytes(connection, () => timer.refresh())
      connection.once('close', () => clearTimeout(timer))
    },
  }
}

/** Calls `hear` with the number of bytes that are pushed in or written out: the stream's own methods see both, whoever reads it. */
function onBytes(connection: Duplex, hear: (bytes: number) => void): void {
  const { push, write } = connection
  connection.push = (...bytes: Parameters<Duplex['push']>) => {
    hear(sizeOf(bytes[0], bytes[1]))
    return push.apply(connection, bytes)
  }
  connection.write = ((...bytes: Parameters<Duplex['write']>) => {
    hear(sizeOf(bytes[0], bytes[1]))
    return write.apply(connection, bytes)
  }) as Duplex['write']
}

function sizeOf(bytes: unknown, encoding?: unknown): number {
  if (typeof bytes === 'string')
    return Buffer.byteLength(bytes, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return bytes instanceof Uint8Array ? bytes.byteLength : 0
}
