/**
 * What one machine holds: memory of a run that waits for its model with a reader on its stream, memory of a sandbox that
 * stands, and what an ended interaction leaves in the database.
 *
 *     node bench/capacity.ts [--streams 2000] [--sandboxes 100] [--ended 500]
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { until } from '../test/contract/invariants.ts'
import { openFakeProvider } from '../test/fake-provider.ts'
import { type Server, startServer } from '../test/support/server.ts'

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '2000' },
    sandboxes: { type: 'string', default: '100' },
    ended: { type: 'string', default: '500' },
  },
})
const [streams, sandboxes, ended] = [Number(values.streams), Number(values.sandboxes), Number(values.ended)]
const KEY = 'a-key-for-metrics'
const MANY = 1_000_000
const limits = { interactionsPerMinute: MANY, callsPerMinute: MANY, runningPerProject: MANY, queuedPerProject: MANY }

const provider = await openFakeProvider({ record: false })
provider.when('[waits]', { fault: 'stall' })
const sleeps = { name: 'code_execution', args: { code: 'import time; time.sleep(3600)', language: 'python' } }
provider.when('[sleeps]', { toolCalls: [sleeps] })
const call = { name: 'code_execution', args: { code: 'print(sum(range(100)))' } }
const answer = Array.from({ length: 40 }, (_, i) => `fragment ${i} `)
provider.when('[ends]', { reasoning: 'I compute it.', toolCalls: [call] }, { text: answer })

const config = {
  metrics: { key: KEY },
  limits,
  workerSlots: 10_000,
  log: 'error',
  sandbox: { pool: 0, maxOpen: 10_000 },
}
const server = await startServer({ provider, config })
try {
  await run('[ends]', 1)
  const before = residentOf(server.process.pid!)

  const bodies = await Promise.all(
    Array.from({ length: streams }, () => server.stream('/v1beta/interactions:stream', { instruction: '[waits]' })),
  )
  await running(streams)
  report('a run that waits for its model, with a reader', (residentOf(server.process.pid!) - before) / streams, 'KiB')
  await cancelAll(bodies.map((body) => body.headers.get('x-interaction-id')!))

  const host = () => family(server.process.pid!).filter((pid) => pid !== server.process.pid!)
  const standing = host().reduce((sum, pid) => sum + privateOf(pid), 0)
  const ids = await Promise.all(Array.from({ length: sandboxes }, () => begin('[sleeps]')))
  await until(async () => (await metric('errand_sandboxes', 'open')) >= sandboxes)
  const held = host().reduce((sum, pid) => sum + privateOf(pid), 0)
  report('a sandbox with a Python in it, beside the server', (held - standing) / sandboxes, 'KiB')
  await cancelAll(ids)

  const small = sizeOf(server)
  await run('[ends]', ended)
  report('an ended interaction in SQLite (one tool call, 40 fragments)', (sizeOf(server) - small) / ended, 'KiB')
  const db = new DatabaseSync(join(server.dataDir, 'errand.db'), { readOnly: true })
  const { events } = db
    .prepare('select avg(last_seq) as events from interactions where status = ?')
    .get('completed') as {
    events: number
  }
  db.close()
  console.log(`events of such an interaction: ${events.toFixed(1)}`)
} finally {
  await server.stop()
  await provider.close()
}

async function begin(instruction: string): Promise<string> {
  const fields = { instruction, tools: ['code_execution'], background: true }
  return (await server.post('/v1beta/interactions', fields)).body.interactionId
}

async function cancelAll(ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map((id) => server.post(`/v1beta/interactions/${id}:cancel`)))
}

async function run(instruction: string, times: number): Promise<void> {
  let left = times
  const worker = async () => {
    while (left-- > 0) await server.post('/v1beta/interactions', { instruction, tools: ['code_execution'] })
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

async function running(count: number): Promise<void> {
  await until(async () => (await metric('errand_interactions', 'running')) >= count)
}

async function metric(name: string, state: string): Promise<number> {
  const text = (await server.get('/metrics', { authorization: `Bearer ${KEY}` })).text
  const line = new RegExp(`^${name}\\{[^}]*"${state}"[^}]*\\} ([\\d.e+]+)$`, 'm').exec(text)
  // Not there while the server is too busy to look.
  return Number(line?.[1] ?? 0)
}

function report(what: string, bytes: number, unit: 'KiB'): void {
  console.log(`${what}: ${(bytes / 1024).toFixed(1)} ${unit}`)
}

function residentOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

/** What is its own alone: many processes share their programs. */
function privateOf(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return [...rollup.matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, [, kib]) => sum + Number(kib) * 1024, 0)
  } catch {
    return 0
  }
}

function family(pid: number): number[] {
  const parents = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const parent = Number(
        readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')[1],
      )
      parents.set(parent, [...(parents.get(parent) ?? []), Number(name)])
    } catch {}
  }
  const found: number[] = []
  for (const open = [pid]; open.length > 0; ) {
    const next = open.pop()!
    found.push(next)
    open.push(...(parents.get(next) ?? []))
  }
  return found
}

function sizeOf({ dataDir }: Server): number {
  const db = new DatabaseSync(join(dataDir, 'errand.db'))
  db.exec('pragma wal_checkpoint(truncate)')
  db.close()
  const files = readdirSync(dataDir).filter((name) => name.startsWith('errand.db'))
  return files.reduce((sum, name) => sum + statSync(join(dataDir, name)).size, 0)
}
