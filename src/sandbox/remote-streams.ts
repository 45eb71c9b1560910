/** Programs and listeners inside a sandbox, over the connection to its host. */
import type { Duplex } from 'node:stream'
import type { Connection } from './connection.ts'
import type { ExecEnd, SandboxProcess, SpawnRequest } from './port.ts'
import type { Address, Done } from './protocol.ts'
import { createStream, type OuterStream } from './stream.ts'

export function spawn(
  connection: Connection,
  address: Address,
  { argv, env = {}, cwd, pipes }: SpawnRequest,
  onStderr: (text: string) => void = () => {},
): SandboxProcess {
  const decoder = new TextDecoder()
  const stream = createStream((message, payload) => call.send({ ...message, conn: 0 }, payload))
  const call = connection.start({ op: 'spawn', ...address, argv, env, cwd, pipes }, undefined, (reply, payload) => {
    if (reply.op === 'err') onStderr(decoder.decode(payload, { stream: true }))
    else stream.receive(reply, payload)
  })
  const exited = call.done.then(
    ({ end }: Done): ExecEnd => {
      stream.lose()
      return end!
    },
    (error: Error): ExecEnd => {
      stream.lose(error)
      return { kind: 'lost' }
    },
  )
  return { stream: stream.duplex, exited, kill: () => call.send({ op: 'kill' }) }
}

export async function listen(
  connection: Connection,
  address: Address,
  port: number,
  onConnection: (connection: Duplex) => void,
): Promise<{ close(): Promise<void> }> {
  const streams = new Map<number, OuterStream>()
  const listening = Promise.withResolvers<void>()
  const call = connection.start({ op: 'listen', ...address, port }, undefined, (reply, payload) => {
    if (reply.op === 'listening') return listening.resolve()
    const conn = 'conn' in reply ? reply.conn : undefined
    if (conn === undefined) return
    if (reply.op === 'accept') {
      const stream = createStream((message, bytes) => call.send({ ...message, conn }, bytes))
      streams.set(conn, stream)
      stream.duplex.once('close', () => streams.delete(conn))
      onConnection(stream.duplex)
    } else streams.get(conn)?.receive(reply, payload)
  })
  const over = call.done.then(
    () => {
      for (const { duplex } of streams.values()) duplex.destroy()
    },
    (error: Error) => {
      listening.reject(error)
      for (const stream of streams.values()) stream.lose(error)
    },
  )
  await listening.promise
  return {
    async close() {
      call.send({ op: 'abort' })
      await over
    },
  }
}
