/**
 * Runs one simulated world from its seed to its verdict: nodes on one database, callers, and a storm of faults. Then
 * all faults end, and the world must come to rest without having lost anything.
 */
import { randomOf } from '../support/prove.ts'
import { checkRest } from './check-rest.ts'
import { type Callers, callerStory, personStory } from './clients.ts'
import { openWorldDatabase, type Tamper } from './database.ts'
import { healMachines, type Machine, planFaults } from './fate.ts'
import { createFileStore } from './files.ts'
import { createJournal } from './journal.ts'
import { simulatedLimits, startNode, type World } from './nodes.ts'
import { drawOdds, heal } from './odds.ts'
import { enter, leave } from './runtime.ts'
import { createSandboxHost } from './sandboxes.ts'
import { createScheduler, type Decision, type Process, type Scheduler } from './scheduler.ts'
import { createHintExchange } from './wakeups.ts'

const STORM_MS = 20_000
const DAY_S = 86_400
/** Maximum time that a world may take to come to rest after all faults have ended. */
const REST_MS = 600_000
const STEPS_BETWEEN_LOOKS = 50

export interface Verdict {
  readonly seed: number
  readonly violations: readonly string[]
  /** Hash of all decisions. The same seed always has the same hash. */
  readonly hash: number
  readonly decisions: readonly Decision[]
  readonly errors: readonly string[]
  readonly interactions: number
  readonly events: number
  readonly commits: number
  readonly faults: number
  readonly virtualMs: number
  /** Number of interactions by status. */
  readonly ends: Readonly<Record<string, number>>
}

export interface SimulateOptions {
  /** A fault planted in the statements that nodes send to the database. */
  readonly tamper?: Tamper
}

export async function simulate(seed: number, { tamper }: SimulateOptions = {}): Promise<Verdict> {
  const scheduler = createScheduler(randomOf(seed))
  enter(scheduler)
  try {
    return await live(scheduler, seed, tamper)
  } finally {
    leave()
  }
}

async function live(scheduler: Scheduler, seed: number, tamper: Tamper | undefined): Promise<Verdict> {
  const { random } = scheduler
  const beganAt = scheduler.now
  const odds = drawOdds(random)
  const limits = simulatedLimits({
    runningPerProject: random.whole(1, 5),
    queuedPerProject: random.whole(2, 20),
    queueWaitS: random.whole(5, 60),
    // A short retention gives starting nodes something to delete.
    retentionDays: scheduler.chance(0.2) ? 10 / DAY_S : 30,
  })
  const machines: Machine[] = []
  const processes = new Map<string, Process>()
  const machineCount = random.whole(1, 3)
  const journal = createJournal({
    scheduler,
    runningPerProject: limits.runningPerProject,
    lives: (process) => processes.get(process)?.state !== 'dead',
    sandboxesOf: (id, node) =>
      machines
        .filter((machine) => machine.node.process === node || (!node && isSound(machine)))
        .filter(({ host }) => host.living().includes(id))
        .map(({ host }) => host.name),
  })
  /**
   * Whether a node runs and has had no fault for so long that the others see it as alive and the database answers it in
   * time.
   */
  const isSound = ({ node, troubledAt }: Machine) =>
    node.process.state === 'running' &&
    !node.leaving &&
    odds.databaseLostThere + odds.databaseLostBack === 0 &&
    scheduler.now - Math.max(troubledAt, node.process.lateAt ?? troubledAt) > 2 * world.leaseMs
  const world: World = {
    scheduler,
    odds,
    journal,
    database: openWorldDatabase({
      scheduler,
      dialect: machineCount > 1 ? 'postgres' : 'sqlite',
      onCommit: journal.committed,
      tamper,
    }),
    files: createFileStore({ scheduler, odds }),
    hints: createHintExchange({ scheduler, odds }),
    limits,
    leaseMs: random.whole(3, 30) * 1_000,
    slots: random.whole(1, 8),
    hasFallback: scheduler.chance(0.6),
    answers: [],
    processes,
    errors: [],
  }
  for (let i = 1; i <= machineCount; i++) machines.push(startMachine(i, world))
  const faults = planFaults({ scheduler, machines, leaseMs: world.leaseMs }, STORM_MS)

  const callers: Callers = { scheduler, journal, anyNode: () => random.pick(machines).node }
  let talking = random.whole(2, 10)
  for (let i = talking; i > 0; i--) {
    void callerStory(`caller ${i}`, random.next() * STORM_MS, callers).finally(() => talking--)
  }
  const waiting = () =>
    world.database
      .look("select id, project_id from interactions where status = 'running' and stage = 'requires_action'")
      .map((row) => ({ id: String(row.id), projectId: String(row.project_id) }))
  let isOver = false
  void personStory(callers, waiting, () => isOver)

  while (await scheduler.step(beganAt + STORM_MS)) if (journal.violations.length > 0) return verdict()
  scheduler.note('fate', 'everything is healed')
  heal(odds)
  healMachines(scheduler, machines)

  const restBy = scheduler.now + REST_MS
  const rests = () =>
    talking === 0 &&
    machines.every(({ host, node }) => !node.leaving && host.living().length === 0) &&
    world.database.look("select 1 from interactions where status = 'running' limit 1").length === 0 &&
    world.database.look("select 1 from webhooks where state = 'pending' limit 1").length === 0
  for (let steps = 0; ; steps++) {
    if (journal.violations.length > 0) return verdict()
    if (steps % STEPS_BETWEEN_LOOKS === 0 && rests()) break
    if (await scheduler.step(restBy)) continue
    journal.violation('the world', `it did not come to rest: ${unrest(world, machines, talking)}`)
    return verdict()
  }
  isOver = true
  await checkRest(world, machines)
  return verdict()

  function verdict(): Verdict {
    const ends: Record<string, number> = {}
    for (const { row } of journal.interactions.values()) ends[row.status] = (ends[row.status] ?? 0) + 1
    return {
      seed,
      violations: journal.violations,
      hash: scheduler.hash,
      decisions: scheduler.decisions,
      errors: world.errors,
      interactions: journal.interactions.size,
      events: [...journal.interactions.values()].reduce((sum, { events }) => sum + events.length, 0),
      commits: journal.commits,
      faults: Object.values(faults).reduce((sum, count) => sum + count, 0),
      virtualMs: scheduler.now - beganAt,
      ends,
    }
  }
}

function startMachine(i: number, world: World): Machine {
  const host = createSandboxHost(`host ${i}`, world)
  // The first machine always has a worker; otherwise there might be none.
  const works = i > 1 && world.scheduler.chance(0.2) ? 'none' : 'all'
  let lives = 0
  const start = () => {
    const skewMs = world.scheduler.chance(0.3) ? (2 * world.scheduler.random.next() - 1) * 3_600_000 : 0
    return startNode({ name: `node ${i}.${++lives}`, skewMs, works }, host, world)
  }
  const machine: Machine = {
    host,
    node: start(),
    troubledAt: Number.NEGATIVE_INFINITY,
    restart() {
      if (machine.node.process.state === 'dead') machine.node = start()
    },
  }
  return machine
}

function unrest(world: World, machines: readonly Machine[], talking: number): string {
  const open = world.database.look("select id, stage, lease_owner, attempts from interactions where status = 'running'")
  const standing = machines.flatMap(({ host }) => host.living().map((id) => `${host.name} has ${id}`))
  const hooks = world.database.look("select interaction_id, attempts from webhooks where state = 'pending'")
  return JSON.stringify({ talking, open, standing, hooks })
}
