/**
 * Named locks, each held by one process. A lock is an abstract unix socket: the kernel releases it when its process ends,
 * however it ends, and leaves no file. Processes that share a lock must be in one network namespace.
 */
import { connect, createServer } from 'node:net'

export interface ProcessLock {
  /** The lock no longer keeps the process running. */
  unref(): void
  release(): Promise<void>
}

/** Rejects if another process holds the lock. */
export async function takeLock(name: string): Promise<ProcessLock> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path: `\0${name}` }, resolve)
  })
  return {
    unref: () => void server.unref(),
    release: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** True also if the process that holds it is stopped or hangs. */
export async function isLockHeld(name: string): Promise<boolean> {
  const socket = connect(`\0${name}`)
  const held = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'))
  })
  socket.destroy()
  return held
}
