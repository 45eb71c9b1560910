/** Removed runs leave neither text nor space in SQLite's files, also with retention while the server runs. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const PAGE = new URL('../../docs/operating.md', import.meta.url)
const RUNS = 30
/** Timeouts that only a hang reaches. */
const TIMEOUT_MS = 300_000
const PATIENT = { timeout: 120_000 }
/** A text longer than a page of the file. */
const LONG = 'x'.repeat(6_000)

let provider: FakeProvider
let dataDir: string
let file: string
let server: Server | undefined
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  provider.when('', () => ({ text: 'Done.' }))
})
afterAll(() => provider?.close())
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-deleted-'))
  file = join(dataDir, 'errand.db')
})
afterEach(async () => {
  await server?.stop()
  server = undefined
  await rm(dataDir, { recursive: true, force: true })
})

async function start(retentionDays: number): Promise<Server> {
  const limits = { ...ROOMY, runningPerProject: 1_000, retentionDays }
  server = await startServer({ provider, dataDir, config: { limits }, ...(server && { key: server.key }) })
  return server
}

/** Creates runs whose labels and instructions can be recognized in a file. */
async function run(on: Server): Promise<string[]> {
  const answers = Array.from({ length: RUNS }, (_, i) =>
    on.post(PATH, { instruction: `instruction-of-${i}; ${LONG}`, labels: { case: `label-of-${i}` } }),
  )
  return (await Promise.all(answers)).map(({ body }) => body.interactionId)
}

/** The runs of which the database's files still contain text. */
async function remembered(): Promise<number[]> {
  const texts = ['', '-wal'].map((ending) => readFile(file + ending, 'latin1').catch(() => ''))
  const found = (await Promise.all(texts)).flatMap((text) => [...text.matchAll(/(?:label|instruction)-of-(\d+)/g)])
  return [...new Set(found.map(([, run]) => Number(run)))].sort((a, b) => a - b)
}

function ask(pragma: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true })
  const [answer] = Object.values(db.prepare(`PRAGMA ${pragma}`).get()!)
  db.close()
  return answer
}

const all = Array.from({ length: RUNS }, (_, i) => i)

it('erases a run that a caller removes, and keeps other runs', { timeout: TIMEOUT_MS }, async () => {
  const first = await start(30)
  const ids = await run(first)
  expect(await remembered()).toEqual(all)
  for (const i of all.filter((i) => i % 2)) await first.request('DELETE', `${PATH}/${ids[i]}`)
  await first.stop()
  expect(await remembered()).toEqual(all.filter((i) => i % 2 === 0))
})

it('erases runs removed by retention from the file and its log, and shrinks the file, while the server runs', {
  timeout: TIMEOUT_MS,
}, async () => {
  await (await start(30)).stop()
  const empty = (await stat(file)).size
  const first = await start(30)
  await run(first)
  await first.stop()
  const full = (await stat(file)).size
  await start(0)
  await expect.poll(remembered, PATIENT).toEqual([])
  // Usage and removal records stay.
  await expect.poll(async () => (await stat(file)).size, PATIENT).toBeLessThan(empty + (full - empty) / 4)
  expect(ask('freelist_count')).toBe(0)
})

it('erases text from a file of an earlier version too, and frees its space by the documented command', {
  timeout: TIMEOUT_MS,
}, async () => {
  const earlier = new DatabaseSync(file)
  earlier.exec('CREATE TABLE earlier (x)')
  earlier.close()
  const first = await start(30)
  await run(first)
  await first.stop()
  const second = await start(0)
  await expect.poll(remembered, PATIENT).toEqual([])
  await second.stop()
  expect(ask('freelist_count')).toBeGreaterThan(RUNS)

  const command = /^node -e "(.*VACUUM.*)"$/m.exec(await readFile(PAGE, 'utf8'))![1]!
  execFileSync(process.execPath, ['-e', command.replaceAll('/var/lib/errand', dataDir)])
  expect([ask('freelist_count'), ask('auto_vacuum')]).toEqual([0, 2])
})
