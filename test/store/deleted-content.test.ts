/** Removed runs leave neither their text nor their space in SQLite's files: with retention, while the server runs. */
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
/** Only a hang reaches these. */
const TIMEOUT_MS = 300_000
const PATIENT = { timeout: 120_000 }
/** Longer than a page of the file. */
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

/** Makes runs whose labels and instructions can be recognized in a file. */
async function run(on: Server): Promise<string[]> {
  const answers = Array.from({ length: RUNS }, (_, i) =>
    on.post(PATH, { instruction: `instruction-of-${i}; ${LONG}`, labels: { case: `label-of-${i}` } }),
  )
  return (await Promise.all(answers)).map(({ body }) => body.interactionId)
}

/** Which of the runs the database's files still have anything of. */
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

it('a run that a caller removes leaves nothing, and what others have stays', { timeout: TIMEOUT_MS }, async () => {
  const first = await start(30)
  const ids = await run(first)
  expect(await remembered()).toEqual(all)
  for (const i of all.filter((i) => i % 2)) await first.request('DELETE', `${PATH}/${ids[i]}`)
  await first.stop()
  expect(await remembered()).toEqual(all.filter((i) => i % 2 === 0))
})

it('what retention removes is gone from the file and its log while the server runs, and the file is smaller', {
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
  // What is counted of the runs stays: usage, and that they were removed.
  await expect.poll(async () => (await stat(file)).size, PATIENT).toBeLessThan(empty + (full - empty) / 4)
  expect(ask('freelist_count')).toBe(0)
})

it('a file of an earlier version loses the text too, and its space by the page’s own command', {
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
