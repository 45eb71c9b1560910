/**
 * R10: runs are canceled at a random point: queued, opening a sandbox, running code that ignores signals, streaming
 * from the model, ending. When the 200 arrives, no process of the run is left. A second request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith, stubbornTree } from '../support/processes.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const RUNS = rounds(500)
const AT_ONCE = 4
/** Longer in the short form, which runs in parallel with other tests. */
const WITHIN_MS = rounds(1_000, 10_000)
const PATH = '/v1beta/interactions'
const random = seeded('R10')

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  const limits = { ...ROOMY, runningPerProject: AT_ONCE - 1 }
  server = await startServer({ provider, config: { limits } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Scripts a run of a random kind. Returns its instruction. */
function script(mark: string): string {
  const instruction = `[${mark}]`
  const code = { toolCalls: [{ name: 'code_execution', args: { code: stubbornTree(mark) } }] }
  const quick = { toolCalls: [{ name: 'code_execution', args: { code: `print('${mark}')` } }] }
  const kinds = [
    [code],
    [quick, { text: 'Done.' }],
    [{ fault: 'stall' }],
    [{ text: ['a', 'b', 'c'], delayMs: 100 }],
  ] as const
  provider.when(instruction, ...random.pick(kinds))
  return instruction
}

async function cancelOne(): Promise<{ status: number; ms: number }> {
  const mark = `mark-${randomUUID()}`
  const body = { instruction: script(mark), tools: ['code_execution'], background: true }
  const { interactionId: id } = (await server.post(PATH, body)).body
  await sleep(random.whole(0, 500))
  const askedAt = performance.now()
  const { status } = await server.post(`${PATH}/${id}:cancel`)
  const ms = performance.now() - askedAt
  expect(await processesWith(mark)).toEqual([])
  expect((await server.post(`${PATH}/${id}:cancel`)).status).toBe(status)
  const { interaction } = await checkEnded(server, id)
  expect(`${interaction.status} ${status}`).toMatch(/^(cancelled 200|completed 409)$/)
  return { status, ms }
}

test('a canceled run has ended when the 200 arrives', { timeout: RUNS * 20_000 }, async () => {
  const times: number[] = []
  let left = RUNS
  const lanes = Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) {
      const { status, ms } = await cancelOne()
      if (status === 200) times.push(ms)
    }
  })
  await Promise.all(lanes)
  times.sort((a, b) => a - b)
  const at = (share: number) => Math.round(times[Math.floor(share * (times.length - 1))]!)
  figure('R10', 'runs, of which cancelled before their end', `${RUNS}, ${times.length}`)
  figure('R10', 'time to 200: median, p99, longest, ms', `${at(0.5)}, ${at(0.99)}, ${at(1)}`)
  expect(at(1)).toBeLessThan(WITHIN_MS)
})
