/** A started container as a cell: demultiplexes its attached stdio, and watches for its end and memory kills. */
import { type Duplex, PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FoundGroup, findGroup, NOTHING_COUNTED } from '../cgroups.ts'
import type { Cell, Counters } from '../driver.ts'
import { type Engine, EngineError } from './engine.ts'

const STDERR_KEPT = 4096
const GONE_WITHIN_MS = 15_000

/** Calls `onGone` when the container is removed. */
export function createCell(
  engine: Engine,
  container: string,
  wire: Duplex,
  group: FoundGroup | undefined,
  onGone: () => void,
): Cell {
  const { stdout, stderrText } = splitOutput(wire)
  let counted = NOTHING_COUNTED
  const { promise: exited, resolve } = Promise.withResolvers<string>()
  wire.on('error', () => {}) // `close` follows
  wire.once('end', () => wire.destroy())
  wire.once('close', async () => {
    stdout.end()
    if (await wasKilledForMemory(engine, container)) {
      counted = { ...counted, memoryKills: counted.memoryKills + 1 }
    }
    resolve(stderrText())
  })
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    await removeContainer(engine, container)
    wire.destroy()
    onGone()
  }
  return {
    stdin: wire,
    stdout,
    exited,
    // The group disappears with the container: the last counters stay valid.
    counters: () => (counted = later(counted, group?.counters())),
    end: () => (ending ??= end()),
  }
}

/** Resolves when the daemon no longer knows the container: its processes are dead, its layer and mounts removed. */
export async function removeContainer(engine: Engine, container: string): Promise<void> {
  const until = Date.now() + GONE_WITHIN_MS
  for (let pause = 5; ; pause = Math.min(2 * pause, 200)) {
    try {
      await engine.ask('DELETE', `/containers/${container}`, { force: 1, v: 1 })
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return
      // Its removal is in progress (409), its file system is busy, or the daemon is restarting.
      if (Date.now() > until) {
        throw new Error(`Docker could not remove the container ${container}: ${(error as Error).message}`)
      }
    }
    await sleep(pause)
  }
}

/** Asks the daemon, because the group has disappeared with the container. */
async function wasKilledForMemory(engine: Engine, container: string): Promise<boolean> {
  try {
    return (await inspect(engine, container)).State.OOMKilled
  } catch {
    return false // it was removed
  }
}

function inspect(engine: Engine, container: string): Promise<{ State: { Pid: number; OOMKilled: boolean } }> {
  return engine.ask('GET', `/containers/${container}/json`)
}

function later(before: Counters, now: Counters = NOTHING_COUNTED): Counters {
  return {
    memoryKills: Math.max(before.memoryKills, now.memoryKills),
    forksRefused: Math.max(before.forksRefused, now.forksRefused),
    periods: Math.max(before.periods, now.periods),
    throttled: Math.max(before.throttled, now.throttled),
  }
}

/** The container's cgroups. Undefined if the daemon's processes are not visible here: then counters are missing. */
export async function groupOf(engine: Engine, container: string): Promise<FoundGroup | undefined> {
  try {
    return findGroup((await inspect(engine, container)).State.Pid, container)
  } catch {
    return undefined // it has already ended
  }
}

/** Splits Docker's frames: eight bytes (number of the stream, three zeros, size), then the data. */
function splitOutput(wire: Duplex): { stdout: PassThrough; stderrText: () => string } {
  const stdout = new PassThrough()
  let stderr = ''
  let head: Buffer = Buffer.alloc(0)
  let left = 0
  let stream = 0
  wire.on('data', (bytes: Buffer) => {
    let rest: Buffer = bytes
    while (rest.length > 0) {
      if (left === 0) {
        const missing = 8 - head.length
        head = Buffer.concat([head, rest.subarray(0, missing)])
        rest = rest.subarray(missing)
        if (head.length < 8) return
        stream = head[0]!
        left = head.readUInt32BE(4)
        head = Buffer.alloc(0)
        continue
      }
      const piece = rest.subarray(0, left)
      left -= piece.length
      rest = rest.subarray(piece.length)
      if (stream === 2) stderr = (stderr + piece.toString()).slice(-STDERR_KEPT)
      else if (!stdout.write(piece)) wire.pause()
    }
  })
  stdout.on('drain', () => wire.resume())
  return { stdout, stderrText: () => stderr.trim() }
}
