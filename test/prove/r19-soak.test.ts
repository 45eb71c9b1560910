/**
 * R19: after thousands of interactions, some with a sandbox and a file, the server uses the same resources as before.
 */
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith } from '../support/processes.ts'
import { figure, rounds } from '../support/prove.ts'
import { BOUNDED_HEAP, type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const RUNS = rounds(20_000, 800)
const AT_ONCE = 16
/** One in this many runs has a sandbox. */
const WITH_SANDBOX = 20
/** One in this many runs is checked completely. */
const CHECKED = 100
const LOOKS = 20
/** Allowed growth of memory from the first half to the second, without the warm-up. */
const MOST_CLIMB_BYTES = 16 * 1024 * 1024
interface Look {
  readonly residentBytes: number
  readonly handles: number
  readonly sockets: number
}

let provider: FakeProvider
let server: Server
let dataDir: string
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  const code = "open('outputs/x.txt', 'w').write('x')"
  const text = ['Some ', 'words ', 'of ', 'an ', 'answer.']
  provider.when('[talks]', { text })
  provider.when('[works]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text })
  dataDir = await mkdtemp(join(tmpdir(), 'errand-r19-'))
  const config = { limits: { ...ROOMY, runningPerProject: 100 } }
  server = await startServer({ provider, dataDir, config, env: BOUNDED_HEAP })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

async function look(): Promise<Look> {
  const own = `/proc/${server.process.pid}`
  const status = await readFile(`${own}/status`, 'utf8')
  const handles = await readdir(`${own}/fd`)
  const targets = await Promise.all(handles.map((fd) => readlink(`${own}/fd/${fd}`).catch(() => '')))
  return {
    residentBytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024,
    handles: handles.length,
    sockets: targets.filter((target) => target.startsWith('socket:')).length,
  }
}

/** Streams a run to its end. */
async function run(i: number): Promise<void> {
  const sandboxed = i % WITH_SANDBOX === 0
  const body = { instruction: sandboxed ? '[works]' : '[talks]', tools: sandboxed ? ['code_execution'] : [] }
  const stream = await server.stream(`${PATH}:stream`, body)
  const seen = await stream.all()
  expect(seen.at(-1)!.data.status).toBe('completed')
  if (i % CHECKED === 0) await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
}

async function runAll(from: number, to: number): Promise<void> {
  let next = from
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < to) await run(next++)
    }),
  )
}

const middle = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!

test('ended runs leave no memory, handle or sandbox behind', { timeout: 3_600_000 }, async () => {
  const looks: Look[] = []
  for (let i = 0; i < LOOKS; i++) {
    await runAll((RUNS / LOOKS) * i, (RUNS / LOOKS) * (i + 1))
    looks.push(await look())
  }
  // The first fifth is the warm-up: some objects are created only once.
  const steady = looks.slice(LOOKS / 5)
  const halves = [steady.slice(0, steady.length / 2), steady.slice(steady.length / 2)] as const
  const [before, after] = halves.map((half) => middle(half.map(({ residentBytes }) => residentBytes))) as [
    number,
    number,
  ]
  // Counts the processes and open files of the sandbox host: none belongs to a run.
  const processes = await until(async () => {
    const found = await processesWith(dataDir)
    return found.length <= 2 && found.length
  })
  figure('R19', 'interactions, one in 20 with a sandbox', RUNS)
  figure('R19', 'memory at the end, MB', (looks.at(-1)!.residentBytes / 1e6).toFixed(0))
  figure('R19', 'growth from the first half to the second, MB', ((after - before) / 1e6).toFixed(1))
  figure('R19', 'handles, of which sockets, after a fifth of the runs', `${steady[0]!.handles}, ${steady[0]!.sockets}`)
  figure('R19', 'handles, of which sockets, at the end', `${looks.at(-1)!.handles}, ${looks.at(-1)!.sockets}`)
  figure('R19', 'processes left: the server and its sandbox host', processes)
  expect(looks.at(-1)!.handles).toBeLessThanOrEqual(
    Math.max(...steady.slice(0, 3).map(({ handles }) => handles)) + AT_ONCE,
  )
  // In a short run V8's heap is still growing.
  if (process.env.PROVE) expect(after - before).toBeLessThan(MOST_CLIMB_BYTES)
})
