/**
 * Names a data directory, and with it its sandbox host, among those of all nodes. A process is named `place.process`; of one
 * that serves on Postgres, all others of its place are dead.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { randomBase62 } from '../domain/ids.ts'

/** Made once, and kept in the data directory. */
export function loadPlace(dataDir: string): string {
  const file = join(dataDir, 'place')
  try {
    // `wx`: of two starters at once, one makes it and the other reads it.
    writeFileSync(file, randomBase62(16), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(file, 'utf8')
}

/**
 * Shows that the process of that name lives, until it closes or is killed: a socket is the one thing that the kernel takes
 * back for certain. Those who share a data directory are on one machine, in one network namespace, as its host's lock asks, too.
 */
export async function showLiving(name: string): Promise<{ close(): Promise<void> }> {
  const sign = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    sign.once('error', reject)
    sign.listen({ path: signOf(name) }, resolve)
  })
  sign.unref()
  return { close: () => new Promise((resolve) => sign.close(() => resolve())) }
}

/** Whether the process of that name, on this data directory, lives. One that is stopped does. */
export function lives(name: string): Promise<boolean> {
  const socket = connect(signOf(name))
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'))
  }).then((living) => {
    socket.destroy()
    return living as boolean
  })
}

/** In the abstract namespace: no file that could stay. */
function signOf(name: string): string {
  return `\0errand-process-${name}`
}
