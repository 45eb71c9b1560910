/**
 * A proxy between Errand and Postgres that parses the protocol's frames and can cut a connection around a COMMIT.
 * Errand then does not know whether the commit was made.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'

/**
 * When a connection is cut: `before` the COMMIT is forwarded, `behind` it (right after it was forwarded), or `after`
 * Postgres has answered it, without forwarding the answer.
 */
export type Cut = 'before' | 'behind' | 'after'

export interface PostgresProxy {
  /** The address of a database, through this proxy. */
  through(url: string): string
  /** Cuts the connection of a later write at its COMMIT, after `skip` other COMMITs. Resolves when it is cut. */
  cut(how: Cut, skip: number): Promise<void>
  /** Cuts all open connections. */
  cutAll(): void
  close(): Promise<void>
}

/** A pending cut, with the number of COMMITs that still pass before it. */
interface Order {
  readonly how: Cut
  skip: number
  readonly done: () => void
}

/** Opens a proxy. `directory` has the socket of Postgres. */
export async function openPostgresProxy(directory: string): Promise<PostgresProxy> {
  let order: Order | undefined
  const open = new Set<() => void>()
  const server = createServer((client) => pass(client))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  function pass(client: Socket): void {
    const database = connect(join(directory, '.s.PGSQL.5432'))
    const sever = () => {
      client.destroy()
      database.destroy()
      open.delete(sever)
    }
    open.add(sever)
    for (const end of [client, database]) end.on('error', sever).on('close', sever)
    let awaited: Order | undefined
    let writes = false

    function cutNow(due: Order): void {
      sever()
      due.done()
    }
    const fromClient = frames(true, (frame) => {
      const said = queryOf(frame)
      if (said?.startsWith('begin')) writes = !said.includes('read only')
      if (said === 'commit' && writes && order && order.skip-- === 0) {
        const due = order
        order = undefined
        if (due.how === 'before') return cutNow(due)
        if (due.how === 'after') awaited = due
        else database.write(frame, () => cutNow(due))
        if (due.how === 'behind') return
      }
      database.write(frame)
    })
    const fromDatabase = frames(false, (frame) => {
      if (awaited && isCommitted(frame)) return cutNow(awaited)
      client.write(frame)
    })
    client.on('data', fromClient)
    database.on('data', fromDatabase)
  }

  return {
    through(url) {
      const { pathname, searchParams } = new URL(url)
      return `postgres://${searchParams.get('user')}@127.0.0.1:${port}${pathname}`
    },
    cut(how, skip) {
      const { promise, resolve } = Promise.withResolvers<void>()
      order = { how, skip, done: resolve }
      return promise
    },
    cutAll() {
      for (const sever of [...open]) sever()
    },
    async close() {
      for (const sever of [...open]) sever()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Splits a byte stream into whole frames: a type (missing in the client's first frame), four bytes of length, the
 * payload.
 */
function frames(fromClient: boolean, onFrame: (frame: Buffer) => void): (piece: Buffer) => void {
  let held: Buffer = Buffer.alloc(0)
  let header = fromClient ? 4 : 5
  return (piece) => {
    held = Buffer.concat([held, piece])
    while (held.length >= header) {
      const size = held.readUInt32BE(header - 4) + header - 4
      if (held.length < size) return
      const frame = held.subarray(0, size)
      held = held.subarray(size)
      header = 5
      onFrame(frame)
    }
  }
}

/** Text of a simple query. Undefined for other frames. */
function queryOf(frame: Buffer): string | undefined {
  return frame.toString('latin1', 0, 1) === 'Q' ? frame.toString('latin1', 5, frame.length - 1) : undefined
}

function isCommitted(frame: Buffer): boolean {
  return frame.toString('latin1', 0, 1) === 'C' && frame.toString('latin1', 5, frame.length - 1) === 'COMMIT'
}
