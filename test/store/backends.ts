/** Runs a suite on each database: SQLite and a real Postgres. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import type { Database } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Cluster, findPostgres, startCluster } from '../support/cluster.ts'

export interface Backend {
  /** An empty database for one test, closed and gone behind it. */
  open(): Promise<Database>
  /** The address of an empty database, for `openAt`. */
  createPlace(): Promise<string>
  /** Another opener of that database. */
  openAt(place: string): Promise<Database>
}

export const quiet = { warn() {} }

const programs = findPostgres()
// A test that is not run where it counts would prove nothing without anybody's noticing.
if (!programs && process.env.CI) throw new Error('There is no Postgres here; `script/setup --for-tests` installs it.')

export function onEveryBackend(suite: (backend: Backend) => void): void {
  describe('on SQLite', () => suite(sqlite()))
  onPostgres('on Postgres', (cluster) => suite(postgres(cluster)))
}

/** Helpers for tests that only apply to Postgres. */
export function onPostgres(title: string, suite: (cluster: () => Cluster) => void): void {
  const reason = programs ? '' : ' (left out: Postgres is not installed)'
  describe.skipIf(!programs)(title + reason, () => {
    let cluster: Cluster
    beforeAll(async () => {
      cluster = await startCluster(programs!)
    })
    afterAll(() => cluster?.stop())
    suite(() => cluster)
  })
}

/** Resources that a test opens. They are closed after the test, newest first. */
export function closingAfterEach<T extends { close(): Promise<void> }>(): (part: T) => T {
  const open: T[] = []
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close()
  })
  return (part) => {
    open.push(part)
    return part
  }
}

function sqlite(): Backend {
  const dirs: string[] = []
  afterAll(() => {
    for (const dir of dirs) rmSync(dir, { recursive: true })
  })
  async function createPlace(): Promise<string> {
    const dir = mkdtempSync(join(tmpdir(), 'errand-store-'))
    dirs.push(dir)
    return join(dir, 'errand.db')
  }
  return backend(createPlace, openSqlite)
}

function postgres(cluster: () => Cluster): Backend {
  return backend(
    () => cluster().createDatabase(),
    (url) => openPostgres(url, { log: quiet }),
  )
}

function backend(createPlace: () => Promise<string>, opener: (place: string) => Promise<Database>): Backend {
  const opened = closingAfterEach<Database>()
  const openAt = async (place: string) => opened(await opener(place))
  return { createPlace, openAt, open: async () => openAt(await createPlace()) }
}
