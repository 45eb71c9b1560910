/**
 * The fork server: forks cells from a template (template.ts), which takes a tenth of the time of starting them whole. They
 * are isolated in the same way, and pass the same self-test.
 *
 * A template makes a limited number of cells, and its successor is ready before the last of them. A template that failed
 * makes no more cells. It ends when the last of its cells has ended.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Group, NOTHING_COUNTED } from '../cgroups.ts'
import type { Cell, CellShape } from '../driver.ts'
import { writablePaths } from '../inside.ts'
import { type FirstProcess, waitUntilGone } from './first-process.ts'
import { tmpfsOptions } from './mounts.ts'
import { openTemplate, type Template, type TemplateOptions } from './template.ts'

export interface ForkServer {
  /** True if a template is ready. Otherwise starts to make one. */
  ready(): boolean
  /** `slot` is the cell's uid inside the template, above 0. */
  launch(shape: CellShape, slot: number, group: Group | undefined, onGone: () => void): Promise<Cell>
  close(): Promise<void>
}

export interface ForkServerOptions {
  readonly template: TemplateOptions
  readonly rlimits: (shape: CellShape) => Readonly<Record<string, number>>
  /** Path of the socket to which children connect, in a directory that only the template can see. */
  readonly door: string
  /** True: `launch` waits for a template if none is ready. False: it rejects at once. */
  readonly waitsForTemplate: boolean
}

/** Maximum number of cells of one template, because they share its memory layout and Python's hash seed. */
const CELLS_PER_TEMPLATE = 250
/** Number of cells after which the next template is made. */
const SUCCESSOR_AT = 225
const AT_DOOR_WITHIN_MS = 10_000
const RETRY_MS = 1000

interface Generation {
  readonly template: Template
  cells: number
  living: number
  /** True: makes no more cells. */
  retired: boolean
}

/** Throws an Error with a sentence if no template can be made here. */
export async function openForkServer(given: ForkServerOptions): Promise<ForkServer> {
  const { template: options, rlimits, door, waitsForTemplate } = given
  const waiting = new Map<string, (socket: Socket) => void>()
  const server = await openDoor(door, options.uids.first, (socket, nonce) => {
    const take = waiting.get(nonce)
    if (take) take(socket)
    else socket.destroy()
  })
  const generations = new Set<Generation>()
  let closed = false
  let failedAt = 0
  let opening: Promise<Generation> | undefined
  let current: Generation | undefined

  async function open(): Promise<Generation> {
    const generation: Generation = { template: await openTemplate(options), cells: 0, living: 0, retired: false }
    generations.add(generation)
    void generation.template.gone.then(() => retire(generation))
    if (closed) await generation.template.end()
    const before = current
    current = generation
    if (before) retire(before)
    return generation
  }

  const usable = (most: number) => (current && !current.retired && current.cells < most ? current : undefined)

  function openNext(): Promise<Generation> {
    if (!opening) {
      opening = openNow()
      // A rejection without a waiting caller must not end the process.
      opening.catch(() => {})
    }
    return opening
  }

  async function openNow(): Promise<Generation> {
    try {
      if (Date.now() - failedAt < RETRY_MS) await sleep(RETRY_MS)
      return await open()
    } catch (error) {
      failedAt = Date.now()
      throw error
    } finally {
      opening = undefined
    }
  }

  /** The template for the next cell, which is already counted. */
  async function parent(): Promise<Generation> {
    if (closed) throw new Error('The sandboxes are closed.')
    const young = usable(SUCCESSOR_AT)
    if (young) return counted(young)
    const next = openNext()
    const old = usable(CELLS_PER_TEMPLATE)
    if (!old && !waitsForTemplate) throw new Error('no template is ready')
    return counted(old ?? (await next))
  }

  function counted(generation: Generation): Generation {
    generation.cells++
    generation.living++
    return generation
  }

  function retire(generation: Generation): void {
    generation.retired = true
    if (generation.living > 0) return
    generations.delete(generation)
    void generation.template.end().catch(() => {})
  }

  /** Retries once with another template: the first may have ended a moment ago. */
  const launch: ForkServer['launch'] = (...cell) => launchOnce(...cell).catch(() => launchOnce(...cell))

  async function launchOnce(
    shape: CellShape,
    slot: number,
    group: Group | undefined,
    onGone: () => void,
  ): Promise<Cell> {
    const from = await parent()
    const left = () => {
      from.living--
      if (from.retired) retire(from)
    }
    const nonce = randomBytes(16).toString('hex')
    const places = writablePaths(shape.limits).map((place) => [place.path, tmpfsOptions(place, slot)] as const)
    const atDoor = Promise.withResolvers<Socket>()
    waiting.set(nonce, atDoor.resolve)
    let first: FirstProcess | undefined
    try {
      const { profile, limits } = shape
      const cell = { nonce, uid: slot, profile, places, rlimits: rlimits(shape), cpus: limits.cpus }
      first = await from.template.fork(cell)
      group?.join(first.pid)
      const late = sleep(AT_DOOR_WITHIN_MS, undefined, { ref: false })
      const socket = await Promise.race([atDoor.promise, late, from.template.gone])
      if (!socket) throw new Error('the forked process did not come')
      socket.write('go\n')
      const said = await readLine(socket)
      if (said !== 'ok') throw new Error(`the sandbox cannot be made: ${said}`)
      return createForkedCell(socket, first, group, () => {
        left()
        onGone()
      })
    } catch (error) {
      from.retired = true
      void atDoor.promise.then((socket) => socket.destroy())
      if (first) await waitUntilGone(first)
      left()
      throw error
    } finally {
      waiting.delete(nonce)
    }
  }

  await open().catch((error) => {
    server.close()
    throw error
  })
  return {
    launch,
    ready() {
      if (closed || usable(CELLS_PER_TEMPLATE)) return !closed
      void openNext()
      return false
    },
    async close() {
      closed = true
      await opening?.catch(() => {})
      await Promise.all([...generations].map(({ template }) => template.end()))
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Listens on a socket to which only `uid` can connect. Each caller sends a line first. */
async function openDoor(path: string, uid: number, onCaller: (socket: Socket, line: string) => void): Promise<Server> {
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o755 })
  const server = createServer((socket) => {
    socket.on('error', () => {}) // `close` follows
    readLine(socket).then(
      (line) => onCaller(socket, line),
      () => socket.destroy(),
    )
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  chmodSync(path, 0o600)
  chownSync(path, uid, uid)
  return server
}

/** Reads one line and leaves the rest in the socket. Rejects if the socket closes before. */
async function readLine(socket: Socket): Promise<string> {
  let text = ''
  for (;;) {
    const bytes = socket.read() as Buffer | null
    if (bytes) {
      const end = bytes.indexOf(10)
      if (end >= 0) {
        if (end + 1 < bytes.length) socket.unshift(bytes.subarray(end + 1))
        return text + bytes.toString('utf8', 0, end)
      }
      text += bytes.toString()
      if (text.length > 1000) throw new Error('no line')
    } else {
      if (socket.destroyed || socket.readableEnded) throw new Error('it ended before it had begun')
      await new Promise<void>((resolve) => {
        const go = () => {
          socket.off('readable', go).off('close', go).off('end', go)
          resolve()
        }
        socket.on('readable', go).on('close', go).on('end', go)
      })
    }
  }
}

function createForkedCell(socket: Socket, first: FirstProcess, group: Group | undefined, onGone: () => void): Cell {
  const exited = new Promise<string>((resolve) => socket.once('close', () => resolve('')))
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    socket.destroy()
    await waitUntilGone(first)
    await group?.remove()
    onGone()
  }
  return {
    stdin: socket,
    stdout: socket,
    exited,
    counters: () => group?.counters() ?? NOTHING_COUNTED,
    end: () => (ending ??= end()),
  }
}
