/** Faults of the nodes of a simulated world, at times that the seed chooses. */
import type { Node } from './nodes.ts'
import type { SandboxHost } from './sandboxes.ts'
import type { Process, Scheduler } from './scheduler.ts'

const HOUR_MS = 3_600_000

/** A machine: its sandbox host, and the node that currently runs on it. */
export interface Machine {
  readonly host: SandboxHost
  node: Node
  /** Time of the most recent start or end of a fault on this machine. */
  troubledAt: number
  /** Starts a new node if the current one is dead. */
  restart(): void
}

export interface FateOptions {
  readonly scheduler: Scheduler
  readonly machines: readonly Machine[]
  readonly leaseMs: number
}

const FAULTS = ['killed', 'paused', 'shut down', 'cut off', 'all cut off', 'host crashed', 'clock moved'] as const

/** Schedules faults within the next `forMs` milliseconds. Returns the number of faults of each kind. */
export function planFaults({ scheduler, machines, leaseMs }: FateOptions, forMs: number): Record<string, number> {
  const { random } = scheduler
  const fate: Process = { name: 'fate', state: 'running', skewMs: 0 }
  const counts: Record<string, number> = {}
  const kinds = FAULTS.filter(() => scheduler.chance(0.5))
  const rate = random.next() * 8
  for (let i = 0; kinds.length > 0 && i < rate; i++) {
    const kind = random.pick(kinds)
    const machine = random.pick(machines)
    counts[kind] = (counts[kind] ?? 0) + 1
    scheduler.schedule(fate, random.next() * forMs, `${machine.host.name}: ${kind}`, () => strike(kind, machine))
  }
  return counts

  function strike(kind: (typeof FAULTS)[number], machine: Machine): void {
    const { node } = machine
    const { process } = node
    const touched = kind === 'all cut off' ? machines : [machine]
    const trouble = () => {
      for (const each of touched) each.troubledAt = scheduler.now
    }
    const later = (ms: number, what: string, run: () => void) =>
      scheduler.schedule(fate, ms, `${machine.host.name}: ${what}`, () => {
        trouble()
        run()
      })
    trouble()
    switch (kind) {
      case 'killed':
        if (process.state === 'dead') return
        node.kill()
        later(random.next() * 1.5 * leaseMs, 'restarted', machine.restart)
        return
      case 'paused':
        if (process.state !== 'running') return
        process.state = 'paused'
        later(random.next() * 2 * leaseMs, 'resumed', () => process.state === 'paused' && scheduler.resume(process))
        return
      case 'shut down':
        if (process.state !== 'running') return
        void node.shutDown(fate, random.pick([0, 500, 5_000])).then(() => {
          trouble()
          if (machine.node === node) machine.restart()
        })
        return
      case 'cut off':
      case 'all cut off': {
        const nodes = touched.map((each) => each.node)
        for (const each of nodes) each.cutOff = true
        later(random.next() * 2 * leaseMs, 'connected', () => {
          for (const each of nodes) each.cutOff = false
        })
        return
      }
      case 'host crashed':
        machine.host.crash()
        return
      case 'clock moved':
        process.skewMs = (2 * random.next() - 1) * HOUR_MS
        return
      default:
        kind satisfies never
    }
  }
}

/** Ends all faults: reconnects and resumes nodes, and restarts dead ones. */
export function healMachines(scheduler: Scheduler, machines: readonly Machine[]): void {
  for (const machine of machines) {
    const { node } = machine
    machine.troubledAt = scheduler.now
    node.cutOff = false
    if (node.process.state === 'paused') scheduler.resume(node.process)
    if (node.process.state === 'dead') machine.restart()
  }
}
