/**
 * The cost of growth: the same requests to a server with a few interactions in its database and to one with 10⁵, and
 * 10⁶ events, on SQLite and, where it is installed, on Postgres.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../src/domain/ids.ts'
import type { Database } from '../src/store/port.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import { type Cluster, findPostgres, startCluster } from '../test/support/cluster.ts'
import { median, short } from './figures.ts'
import type { Measurement, Plan, Result, Table, Verdict } from './measurement.ts'
import { type Errand, openErrand, openProvider, type Provider } from './sides.ts'
import { load } from './throughput.ts'

const FEW = 50
const MANY = 100_000
const EVENTS = 1_000_000
const BATCH = 1_000
const DAY_MS = 86_400_000
/** All of them are younger than what retention removes. */
const SPREAD_MS = 20 * DAY_MS
const REQUESTS = 100
const SECRET = 'the secret of both nodes of the bench'

type Kind = 'SQLite' | 'Postgres'

/** Paths by what they ask for; `id` and `middle` are of the server that is asked. */
const ASKED: Readonly<Record<string, (of: { readonly id: string; readonly middle: string }) => string>> = {
  'GET of an interaction': ({ id }) => `/v1beta/interactions/${id}`,
  'first page of the list': () => '/v1beta/interactions?pageSize=20',
  'a page from the middle of the list': ({ middle }) => `/v1beta/interactions?pageSize=20&createdBefore=${middle}`,
  'a page by a key that has none': () => '/v1beta/interactions?pageSize=20&keyId=key_none',
  'a page by status': () => '/v1beta/interactions?pageSize=20&status=completed',
  'resuming a stream': ({ id }) => `/v1beta/interactions/${id}:stream?lastEventId=3`,
}

export const growth: Measurement = {
  name: 'growth',
  title: 'Cost of growth',
  rows: ['V9'],
  how: `Medians of ${REQUESTS} requests a round, one after another, by turns to a server with ${FEW} interactions stored and to one with ${MANY.toLocaleString('en-US')}, which have ${EVENTS.toLocaleString('en-US')} events or more.`,
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const programs = findPostgres()
  const provider = await openProvider()
  const cluster = programs === undefined ? undefined : await startCluster(programs)
  const tables: Table[] = []
  const verdicts: Verdict[] = []
  try {
    for (const kind of cluster ? (['SQLite', 'Postgres'] as const) : (['SQLite'] as const)) {
      const few = await stored(kind, provider, cluster, FEW)
      const many = await stored(kind, provider, cluster, plan.short ? 5 * FEW : MANY)
      try {
        const times = await asked(few, many, plan)
        const rows = [...times].map(([what, [small, large]]) => [
          what,
          short(small),
          short(large),
          short(large / small),
        ])
        const title = `${kind}: ${FEW} interactions, and ${many.count.toLocaleString('en-US')} with ${many.events.toLocaleString('en-US')} events`
        tables.push({ title, head: ['', 'few, ms', 'many, ms', 'ratio'], rows })
        for (const [what, [small, large]] of times) {
          verdicts.push({ row: 'V9', what: `${what}, ${kind}`, measured: large / small, bound: 'at most', target: 1.5 })
        }
      } finally {
        await many.close()
        await few.close()
      }
    }
  } finally {
    await cluster?.stop()
    await provider.stop()
  }
  const missing = cluster ? [] : ['Postgres, which is not installed here']
  return { verdicts, tables, missing }
}

interface Store {
  readonly server: Errand
  readonly count: number
  readonly events: number
  /** One of its interactions, from the middle of their time, and when that was made. */
  readonly id: string
  readonly middle: string
  close(): Promise<void>
}

/** A server that has so many: one run for all, whose rows are copied under other ids. */
async function stored(kind: Kind, provider: Provider, cluster: Cluster | undefined, count: number): Promise<Store> {
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-bench-'))
  const address = kind === 'Postgres' ? await cluster!.createDatabase() : undefined
  const env: Record<string, string> = {}
  if (address !== undefined) {
    Object.assign(env, {
      ERRAND_DATABASE_URL: address,
      ERRAND_SECRET: SECRET,
      ERRAND_BLOBS_URL: `file://${dataDir}/files`,
    })
  }
  const config = { skillsDir: join(dataDir, 'skills') }
  const first = await openErrand(provider, { dataDir, env, config })
  await load(first, { atOnce: 1, runs: 1 })
  await first.stop()
  const db =
    address === undefined ? await openSqlite(join(dataDir, 'errand.db')) : await openPostgres(address, { log: console })
  const { events, ids } = await copy(db, count)
  await db.close()
  const server = await openErrand(provider, { dataDir, env, config, key: first.target.key })
  return {
    server,
    count: ids.length,
    events,
    id: ids[ids.length >> 1]!,
    middle: new Date(Date.now() - SPREAD_MS / 2).toISOString(),
    async close() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Number of interactions: at least this many, or with MANY as many as make EVENTS events. */
async function copy(db: Database, least: number): Promise<{ events: number; ids: readonly string[] }> {
  const [template] = await db.query.selectFrom('interactions').selectAll().execute()
  const count = least === MANY ? Math.max(MANY, Math.ceil(EVENTS / Number(template!.last_seq))) : least
  const began = Date.now() - SPREAD_MS
  const made = Array.from({ length: count }, (_, i) => {
    const at = began + Math.floor((i * SPREAD_MS) / count)
    return { id: newId('int', at), at }
  })
  const rows =
    db.dialect === 'sqlite'
      ? "select value ->> 'id' as id, value ->> 'at' as at from json_each(?)"
      : "select value ->> 'id' as id, (value ->> 'at')::bigint as at from jsonb_array_elements($1::jsonb)"
  const copies = await Promise.all(
    (['interactions', 'specs', 'events', 'turns'] as const).map(async (table) => {
      const [row] = await db.query.selectFrom(table).selectAll().limit(1).execute()
      const key = table === 'interactions' ? 'id' : 'interaction_id'
      const others = Object.keys(row!).filter((column) => column !== key)
      const values = others.map((name) =>
        table === 'interactions' && name === 'created_at' ? 'made.at' : `of_one.${name}`,
      )
      const from = `(select * from ${table} where ${key} = '${template!.id}') as of_one`
      return `insert into ${table} (${key}, ${others.join(', ')}) select made.id, ${values.join(', ')} from (${rows}) as made cross join ${from}`
    }),
  )
  for (let at = 0; at < count; at += BATCH) {
    const some = JSON.stringify(made.slice(at, at + BATCH))
    const result = await db.write(copies.map((text) => ({ query: { sql: text, parameters: [some] } })))
    if (!result.ok) throw new Error(`copying failed: ${result.reason}`)
  }
  if (db.dialect === 'postgres') await db.write([{ query: { sql: 'analyze', parameters: [] } }])
  return { events: count * Number(template!.last_seq), ids: made.map(({ id }) => id) }
}

/** Milliseconds, by what is asked for: of the small one and of the large one. */
async function asked(few: Store, many: Store, plan: Plan): Promise<Map<string, [number, number]>> {
  const found = new Map<string, [number, number]>()
  for (const [what, pathOf] of Object.entries(ASKED)) {
    const times: [number[], number[]] = [[], []]
    for (let round = 0; round <= plan.rounds; round++) {
      for (const [i, store] of [few, many].entries()) {
        const time = await timeOf(store, pathOf(store), plan.short ? 5 : REQUESTS)
        // The first round warms up.
        if (round > 0) times[i]!.push(time)
      }
    }
    found.set(what, [median(times[0]), median(times[1])])
    plan.log(`${what}: ${times.map((of) => short(median(of))).join(' and ')} ms`)
  }
  return found
}

async function timeOf({ server }: Store, path: string, requests: number): Promise<number> {
  const { url, key } = server.target
  const times: number[] = []
  for (let i = 0; i < requests; i++) {
    const began = performance.now()
    const answer = await fetch(url + path, { headers: { 'x-svc-api-key': key! } })
    const text = await answer.text()
    times.push(performance.now() - began)
    const whole = path.includes(':stream') ? text.includes('event: completed') : JSON.parse(text)
    if (answer.status !== 200 || !whole) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`)
    if (whole.interactions && whole.interactions.length !== (path.includes('keyId') ? 0 : 20))
      throw new Error(`${path}: ${whole.interactions.length} on a page`)
  }
  return median(times)
}
