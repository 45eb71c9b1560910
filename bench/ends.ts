/**
 * Cost of counting the end of a run: ends of one project at once, with no count, with a row of its own
 * (as in src/store/usage.ts), and with the rejected design: one row for each group, which each end rewrites. Runs on both stores,
 * alternating between the designs. Then measures how long it takes to add the rows together and to read a month.
 *
 *     node bench/ends.ts [--ends 1000] [--at-once 64] [--rounds 5]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { endStatements, type Fence, numberEvents } from '../src/store/events.ts'
import { insertInteraction } from '../src/store/insert-interaction.ts'
import type { Database, Statement } from '../src/store/port.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import { readUsage, sumEndedUsage } from '../src/store/usage.ts'
import { claimant, ending, newInteraction, PROJECT, times, USAGE } from '../test/store/rows.ts'
import { findPostgres, startCluster } from '../test/support/cluster.ts'

const { values } = parseArgs({
  options: {
    ends: { type: 'string', default: '1000' },
    'at-once': { type: 'string', default: '64' },
    rounds: { type: 'string', default: '5' },
  },
})
const [ends, atOnce, rounds] = [Number(values.ends), Number(values['at-once']), Number(values.rounds)]

type Way = 'not counted' | 'a row each' | 'one row rewritten'
const WAYS: readonly Way[] = ['not counted', 'a row each', 'one row rewritten']

const oneRow = ({
  dialect,
}: Database) => `insert into usage select project_id, '2026-01-01', '', '', key_id, 1, 1, 0, 0, 1, 1, 1 from interactions
  where id = ${dialect === 'sqlite' ? '?' : '$1'} on conflict (project_id, day, agent_id, model, key_id, latency_bucket)
  do update set runs = usage.runs + 1, input_tokens = usage.input_tokens + 1`

function counted(db: Database, way: Way, fence: Fence, statements: Statement[]): Statement[] {
  if (way === 'a row each') return statements
  const others = statements.filter(({ query }) => !query.sql.startsWith('insert into "usage_ends"'))
  return way === 'not counted' ? others : [...others, { query: { sql: oneRow(db), parameters: [fence.id] }, rows: 1 }]
}

interface Cost {
  readonly perSecond: number
  /** Processor time of this process for one end, on SQLite with its writer thread. */
  readonly cpuMicros: number
}

async function endAll(db: Database, way: Way): Promise<Cost> {
  const fences: Fence[] = []
  for (let i = 0; i < ends; i += atOnce) {
    fences.push(...(await Promise.all(times(Math.min(atOnce, ends - i), () => claimed(db)))))
  }
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const lanes = times(atOnce, async () => {
    for (let fence = fences.pop(); fence; fence = fences.pop()) {
      const how = ending(fence.id, {
        status: 'completed',
        usage: { ...USAGE, duration_ms: 1 + Math.random() * 30_000 },
      })
      const result = await db.write(
        counted(db, way, fence, endStatements(db, fence, numberEvents(how.events, fence.lastSeq), how)),
      )
      if (!result.ok) throw new Error(`an end failed: ${JSON.stringify(result)}`)
    }
  })
  await Promise.all(lanes)
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: ends / ((performance.now() - startedAt) / 1_000), cpuMicros: (user + system) / ends }
}

async function claimed(db: Database): Promise<Fence> {
  const room = { queuedPerProject: 1e9, runningPerProject: 1e9 }
  const inserted = await insertInteraction(db, newInteraction(room), { ...claimant, ...room })
  if (inserted.outcome !== 'accepted' || !inserted.claim) throw new Error(inserted.outcome)
  return inserted.claim
}

async function measure(store: string, db: Database): Promise<void> {
  const costs = new Map<Way, Cost[]>(WAYS.map((way) => [way, []]))
  for (const _ of times(rounds + 1, Number)) for (const way of WAYS) costs.get(way)!.push(await endAll(db, way))
  console.log(`${store}: medians of ${rounds} × ${ends} ends, ${atOnce} at once`)
  for (const way of WAYS) {
    const all = costs.get(way)!.slice(1)
    const [rate, cpu] = [median(all.map(({ perSecond }) => perSecond)), median(all.map(({ cpuMicros }) => cpuMicros))]
    console.log(
      `  ${way.padEnd(18)} ${rate.toFixed(0).padStart(6)} ends/s, ${cpu.toFixed(0).padStart(4)} µs of this process`,
    )
  }
  const day = new Date().toISOString().slice(0, 10)
  const question = { projectIds: [PROJECT], from: '2026-01-01', to: day, groups: ['day'] } as const
  const before = await timed(() => readUsage(db, question, 100_000))
  let added = 0
  const adding = await timed(async () => {
    for (let n = -1; n !== 0; added += n) n = await sumEndedUsage(db, 500)
  })
  const after = await timed(() => readUsage(db, question, 100_000))
  console.log(`  ${added} rows added together in ${adding} ms; read in ${before} ms before, ${after} ms after`)
}

async function timed(act: () => Promise<unknown>): Promise<string> {
  const startedAt = performance.now()
  await act()
  return (performance.now() - startedAt).toFixed(1)
}

const median = (some: readonly number[]) => some.toSorted((a, b) => a - b)[Math.floor(some.length / 2)]!

const directory = mkdtempSync(join(tmpdir(), 'errand-ends-'))
const sqlite = await openSqlite(join(directory, 'errand.db'))
await measure('SQLite', sqlite)
await sqlite.close()
rmSync(directory, { recursive: true })
const programs = findPostgres()
if (programs) {
  const cluster = await startCluster(programs, { settings: () => ['fsync=on'] })
  const postgres = await openPostgres(await cluster.createDatabase(), { log: { warn() {} }, poolSize: 20 })
  await measure('Postgres', postgres)
  await postgres.close()
  await cluster.stop()
}
