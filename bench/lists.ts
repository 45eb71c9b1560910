/**
 * Duration of one page of the list of interactions, with every filter, with many interactions of one project stored among
 * those of others. Runs the operation of the API on both stores, with pages of 100 rows, as the console requests them.
 *
 *     node bench/lists.ts [--rows 100000] [--times 30]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { newId } from '../src/domain/ids.ts'
import { listInteractions } from '../src/store/list-interactions.ts'
import type { Database } from '../src/store/port.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import { filtersAround } from '../test/store/filters.ts'
import { PROJECT, SPEC, times } from '../test/store/rows.ts'
import { findPostgres, startCluster } from '../test/support/cluster.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '100000' }, times: { type: 'string', default: '30' } },
})
const [rows, tries] = [Number(values.rows), Number(values.times)]
const BATCH = 500
const PAGE = 101
const EVERY_MS = 30_000
const from = Date.now() - rows * EVERY_MS

/** Every second one is another project's. One of a hundred failed, one of a thousand runs; all but one of fifty are of team red. */
async function seed(db: Database): Promise<string> {
  const spec = JSON.stringify(SPEC)
  const ids: string[] = []
  for (let first = 0; first < 2 * rows; first += BATCH) {
    const batch = times(Math.min(BATCH, 2 * rows - first), (i) => {
      const n = (first + i) >> 1
      const at = from + n * EVERY_MS
      return { n, at, id: newId('int', at), project_id: (first + i) % 2 === 0 ? PROJECT : 'prj_other' }
    })
    ids.push(...batch.map(({ id }) => id))
    const of = <T extends object>(row: (each: (typeof batch)[number]) => T) => batch.map(row)
    const statements = [
      db.query.insertInto('interactions').values(
        of(({ n, at, id, project_id }) => ({
          id,
          project_id,
          key_id: `key${n % 7}`,
          agent_id: n % 3 === 0 ? null : `agent${n % 10}`,
          model: `model${n % 4}`,
          status: n % 1_000 === 0 ? 'running' : n % 100 === 1 ? 'failed' : 'completed',
          stage: 'settling',
          created_at: at,
          ended_at: at + 5_000,
          epoch: 1,
          attempts: 1,
          lease_until: 0,
          last_seq: 5,
        })),
      ),
      db.query.insertInto('specs').values(of(({ id }) => ({ interaction_id: id, spec, labels: '{}' }))),
      db.query.insertInto('labels').values(
        of(({ n, id, project_id }) => [
          {
            project_id,
            kind: 'interaction' as const,
            object_id: id,
            key: 'team',
            value: n % 50 === 0 ? 'blue' : 'red',
          },
          {
            project_id,
            kind: 'interaction' as const,
            object_id: id,
            key: 'stage',
            value: n % 20 === 0 ? 'test' : 'live',
          },
        ]).flat(),
      ),
    ]
    await db.write(statements.map((statement) => ({ query: statement.compile() })))
  }
  return ids[rows]!
}

async function measure(store: string, db: Database, settle: () => Promise<unknown>): Promise<void> {
  const middle = await seed(db)
  await settle()
  console.log(`${store}: ms for a page of 100 among ${rows} interactions, median and slowest of ${tries}`)
  for (const [name, filter] of filtersAround(from + (rows / 2) * EVERY_MS, middle)) {
    const took: number[] = []
    let found = 0
    for (const _ of times(tries + 3, Number)) {
      const startedAt = performance.now()
      found = (await listInteractions(db.forProject(PROJECT), PROJECT, filter, PAGE)).interactions.length
      took.push(performance.now() - startedAt)
    }
    const sorted = took.slice(3).toSorted((a, b) => a - b)
    const [median, slowest] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!]
    console.log(
      `  ${name.padEnd(40)} ${median.toFixed(1).padStart(7)} ${slowest.toFixed(1).padStart(8)}  ${found} rows`,
    )
  }
}

const directory = mkdtempSync(join(tmpdir(), 'errand-lists-'))
const sqlite = await openSqlite(join(directory, 'errand.db'))
await measure('SQLite', sqlite, async () => {})
await sqlite.close()
rmSync(directory, { recursive: true })
const programs = findPostgres()
if (programs) {
  const cluster = await startCluster(programs)
  const postgres = await openPostgres(await cluster.createDatabase(), { log: { warn() {} } })
  await measure('Postgres', postgres, () => postgres.write([{ query: { sql: 'analyze', parameters: [] } }]))
  await postgres.close()
  await cluster.stop()
}
