/** R11: maxTurnDuration ends a process tree that ignores SIGTERM on time, and no process is left. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith, stubbornTree } from '../support/processes.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const RUNS = rounds(100, 8)
const AT_ONCE = 4
const LIMIT_S = 3
/** Longer in the short form, which runs in parallel with other tests. */
const LATE_MS = rounds(2_000, 10_000)
const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Returns the delay of the response after the deadline, in milliseconds. */
async function runIntoDeadline(): Promise<number> {
  const mark = `mark-${randomUUID()}`
  provider.when(`[${mark}]`, { toolCalls: [{ name: 'code_execution', args: { code: stubbornTree(mark) } }] })
  const policy = { maxTurnDuration: LIMIT_S }
  const stream = await server.stream(`${PATH}:stream`, { instruction: `[${mark}]`, tools: ['code_execution'], policy })
  const startedAt = performance.now()
  const events = await stream.all()
  const lateMs = performance.now() - startedAt - LIMIT_S * 1_000
  expect(await processesWith(mark)).toEqual([])
  expect(
    events.some(({ event }) => event === 'tool_output'),
    'the tree had started',
  ).toBe(true)
  const { interaction } = await checkEnded(server, stream.headers.get('x-interaction-id')!, events)
  expect(interaction).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
  return lateMs
}

test('a run whose processes ignore SIGTERM ends at its deadline and leaves no process', {
  timeout: RUNS * 20_000,
}, async () => {
  const late: number[] = []
  for (let run = 0; run < RUNS; run += AT_ONCE) {
    late.push(...(await Promise.all(Array.from({ length: AT_ONCE }, runIntoDeadline))))
  }
  figure('R11', 'runs into maxTurnDuration with a stubborn tree', late.length)
  figure('R11', 'longest time from the limit to the end, ms', Math.round(Math.max(...late)))
  expect(Math.max(...late)).toBeLessThan(LATE_MS)
})
