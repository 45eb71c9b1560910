/**
 * A machine's simulated sandbox host, an implementation of src/sandbox/port.ts. Sandboxes outlive their workers, are
 * fenced by epoch, and identify each step by its key. Code is not run, but reported to the journal. Requests of one
 * node arrive in order.
 */
import type { ExecEnd, ExecResult, Sandbox, Sandboxes, SandboxSpec } from '../../src/sandbox/port.ts'
import { SandboxError } from '../../src/sandbox/port.ts'
import type { Journal } from './journal.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface SandboxHost {
  readonly name: string
  /** Connects one node of this machine to the host. */
  connect(node: Process): Sandboxes
  /** Ids of the interactions that have a sandbox on this host now. */
  living(): readonly string[]
  /** Crashes the host with all its sandboxes. A new host replaces it immediately. */
  crash(): void
}

interface Step {
  readonly waiting: ((result: ExecResult) => void)[]
  readonly listeners: ((text: string) => void)[]
  result: ExecResult | undefined
}

interface Cell {
  readonly id: string
  alive: boolean
  epoch: number
  readonly files: Map<string, Uint8Array>
  readonly steps: Map<string, Step>
}

/** A pending request. */
interface Call<T> {
  /** The interaction's id. */
  readonly id: string
  readonly what: string
  readonly isOpen: boolean
  answer(value: T): void
  fail(error: Error): void
}

export function createSandboxHost(
  name: string,
  { scheduler, odds, journal }: { scheduler: Scheduler; odds: Odds; journal: Journal },
): SandboxHost {
  const host: Process = { name, state: 'running', skewMs: 0 }
  const cells = new Map<string, Cell>()
  const calls = new Set<Call<never>>()
  const { random, chance } = scheduler
  const delay = () => 0.1 + random.next() * (chance(0.05) ? 200 : 2)

  function end(step: Step, how: ExecEnd): void {
    if (step.result) return
    step.result = { output: 'done\n', truncated: false, end: how, durationMs: 1, sessionRestarted: false }
    for (const tell of step.waiting) tell(step.result)
  }

  function kill(cell: Cell): void {
    cell.alive = false
    if (cells.get(cell.id) === cell) cells.delete(cell.id)
    for (const step of cell.steps.values()) end(step, { kind: 'lost' })
  }

  function begin(cell: Cell, key: string): Step {
    const step: Step = { waiting: [], listeners: [], result: undefined }
    cell.steps.set(key, step)
    journal.ran(name, cell.id, key)
    if (chance(0.5)) cell.files.set(`outputs/${key}.txt`, Buffer.from(`${cell.id} ${key}`))
    const takesMs = random.next() * (chance(0.2) ? 8_000 : 300)
    scheduler.schedule(host, takesMs / 2, `output of ${key}`, () => {
      for (const tell of step.listeners) tell('some output\n')
      if (chance(odds.sandboxDies)) kill(cell)
    })
    const how: ExecEnd = chance(0.8) ? { kind: 'exit', code: 0 } : { kind: 'timeout', afterMs: takesMs }
    scheduler.schedule(host, takesMs, `end of ${key}`, () => cell.alive && end(step, how))
    return step
  }

  /** Returns the sandbox if it is alive and this epoch may still use it. Throws otherwise. */
  function claimed(cell: Cell, epoch: number): Cell {
    if (!cell.alive) throw lost()
    if (epoch < cell.epoch) throw new SandboxError('stale', 'A newer worker owns the sandbox.')
    return cell
  }

  function connect(node: Process): Sandboxes {
    let lastThere = 0
    let lastBack = 0
    /** Sends a message that arrives after all earlier ones. */
    function there(what: string, run: () => void): void {
      lastThere = Math.max(lastThere, scheduler.now + delay())
      scheduler.schedule(host, lastThere - scheduler.now, what, run)
    }
    function back(what: string, run: () => void): void {
      lastBack = Math.max(lastBack, scheduler.now + delay())
      scheduler.schedule(node, lastBack - scheduler.now, what, run)
    }

    /** Sends one request. `act` runs at the host and may answer later. */
    function request<T>(what: string, id: string, act: (call: Call<T>) => void): Promise<T> {
      return new Promise((resolve, reject) => {
        const close = (how: string, settle: () => void) => {
          if (calls.delete(call)) back(`${what}: ${how}`, settle)
        }
        const call: Call<T> = {
          id,
          what,
          get isOpen() {
            return calls.has(call)
          },
          answer: (value) => close('answer', () => resolve(value)),
          fail: (error) => close('failed', () => reject(error)),
        }
        calls.add(call)
        there(`${what} for ${node.name}`, () => {
          if (!call.isOpen) return
          try {
            act(call)
          } catch (error) {
            call.fail(error as Error)
          }
        })
      })
    }

    const at = <T>(what: string, cell: Cell, epoch: number, act: (cell: Cell) => T) =>
      request<T>(what, cell.id, (call) => call.answer(act(claimed(cell, epoch))))

    function take({ interactionId: id, epoch }: SandboxSpec): Sandbox | undefined {
      const cell = cells.get(id)
      if (!cell) return undefined
      claimed(cell, epoch).epoch = epoch
      return createSandbox(cell, epoch, false)
    }

    function make({ interactionId: id, epoch, lifetimeMs }: SandboxSpec): Sandbox {
      const cell: Cell = { id, epoch, alive: true, files: new Map(), steps: new Map() }
      cells.set(id, cell)
      scheduler.schedule(host, lifetimeMs, 'a sandbox’s time is over', () => kill(cell))
      return createSandbox(cell, epoch, true)
    }

    function createSandbox(cell: Cell, epoch: number, fresh: boolean): Sandbox {
      return {
        fresh,
        async exec({ key }, onOutput, signal) {
          const cancelled: ExecEnd = { kind: 'cancelled' }
          const nothing = { output: '', truncated: false, durationMs: 0, sessionRestarted: false }
          if (signal.aborted) return { ...nothing, end: cancelled }
          const onAbort = () =>
            there(`kill ${key}`, () => {
              const step = cell.steps.get(key)
              if (step && epoch >= cell.epoch) end(step, cancelled)
            })
          signal.addEventListener('abort', onAbort)
          try {
            return await request<ExecResult>(`exec ${key}`, cell.id, ({ answer }) => {
              claimed(cell, epoch)
              journal.acted(node, cell.id, epoch)
              const step = cell.steps.get(key) ?? begin(cell, key)
              step.listeners.push((text) => back(`output of ${key}`, () => onOutput(text)))
              if (step.result) answer(step.result)
              else step.waiting.push(answer)
            })
          } catch (error) {
            if (error instanceof SandboxError && error.code === 'lost') return { ...nothing, end: { kind: 'lost' } }
            throw error
          } finally {
            signal.removeEventListener('abort', onAbort)
          }
        },
        job: () => Promise.reject(new Error('The simulation has no jobs.')),
        jobs: async () => [],
        async writeFile(path, bytes, mode) {
          const parts = mode === 'append' ? [cell.files.get(path) ?? new Uint8Array()] : []
          for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) parts.push(part)
          await at(`write ${path}`, cell, epoch, () => cell.files.set(path, Buffer.concat(parts)))
        },
        readFile: (path) => at(`read ${path}`, cell, epoch, () => fileOf(cell, path)),
        async *openFile(path) {
          yield await at(`read ${path}`, cell, epoch, () => fileOf(cell, path))
        },
        list: (path) =>
          at(`list ${path}`, cell, epoch, () => {
            const found = [...cell.files].filter(([file]) => path === '.' || file.startsWith(`${path}/`))
            if (found.length === 0) throw new SandboxError('not_found', 'There is no such directory.')
            const relative = (file: string) => (path === '.' ? file : file.slice(path.length + 1))
            const entries = found.map(([file, { length: size }]) => ({
              path: relative(file),
              type: 'file' as const,
              size,
            }))
            return { entries, more: false }
          }),
        async setEnvironment() {},
        spawn: () => {
          throw new Error('not simulated')
        },
        listen: async () => {
          throw new Error('not simulated')
        },
        destroy: () => request<void>('destroy', cell.id, ({ answer }) => answer(kill(cell))),
      }
    }

    return {
      async open(spec, signal) {
        const { interactionId: id, epoch } = spec
        const unavailable = new SandboxError('unavailable', 'No sandbox is available.')
        if (signal.aborted) throw unavailable
        let onAbort = () => {}
        try {
          return await request<Sandbox>('open', id, (call) => {
            onAbort = () => there('kill open', () => call.fail(unavailable))
            signal.addEventListener('abort', onAbort)
            if (signal.aborted) onAbort()
            const standing = take(spec)
            if (standing) return call.answer(standing)
            if (chance(odds.sandboxRefused)) return call.fail(unavailable)
            if (chance(odds.sandboxHangs)) return
            scheduler.schedule(host, delay() * 20, 'a sandbox is ready', () => {
              if (!call.isOpen) return
              try {
                // A newer worker may have created one meanwhile.
                const sandbox = take(spec)
                journal.acted(node, id, epoch)
                call.answer(sandbox ?? make(spec))
              } catch (error) {
                call.fail(error as Error)
              }
            })
          })
        } finally {
          signal.removeEventListener('abort', onAbort)
        }
      },
      destroy: (id) =>
        request<void>('destroy', id, ({ answer }) => {
          for (const call of calls) if (call.id === id && call.what === 'open') call.fail(lost())
          const cell = cells.get(id)
          if (cell) kill(cell)
          answer()
        }),
      living: () => request<string[]>('living', '', ({ answer }) => answer([...cells.keys()])),
      facts: () => Promise.reject(new Error('not simulated')),
      counts: () => Promise.reject(new Error('not simulated')),
      async close() {},
    }
  }

  return {
    name,
    connect,
    living: () => [...cells.keys()],
    crash() {
      for (const cell of [...cells.values()]) kill(cell)
      for (const call of calls) call.fail(lost())
    },
  }
}

function fileOf(cell: Cell, path: string): Uint8Array {
  const bytes = cell.files.get(path)
  if (!bytes) throw new SandboxError('not_found', 'There is no such file.')
  return bytes
}

function lost(): SandboxError {
  return new SandboxError('lost', 'The sandbox is gone.')
}
