/**
 * R1: kill -9 of the server, at a named point or at a moment that nobody chose, under runs that think, run code and answer.
 * The next server ends each as it should, and no finished tool call was run again: each call appends a line with the time
 * to a file in outputs/, and prints it; what the trace says must be what the file says.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Point } from '../../src/engine/parts.ts'
import { checkEnded, ended, ROOMY, traceOf } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, type RecordedRequest, type Reply } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { onEveryStore } from './stores.ts'

const LEASE_S = 2
const AT_ONCE = 3
const CALLS = 2
/** On each store; two kills a round: one at a random moment, one at a named point. */
const ROUNDS = rounds(50, 2)
/** Its first fragment is too long to be held back. */
const ANSWER = [`${'One '.repeat(80)}, `, 'two, ', 'three.']
const random = seeded('R1')

/** Each named point, with how often a batch of runs comes to it. */
const POINTS: readonly (readonly [Point, number])[] = [
  ['accepted', AT_ONCE],
  ['claimed', AT_ONCE],
  ['before-write', 12 * AT_ONCE],
  ['after-write', 12 * AT_ONCE],
  ['model-speaks', 4 * AT_ONCE],
  ['tool-begins', CALLS * AT_ONCE],
  ['tool-speaks', 3 * CALLS * AT_ONCE],
  ['tool-ended', CALLS * AT_ONCE],
  ['files-stored', AT_ONCE],
  ['sandbox-gone', AT_ONCE],
]

/** The scripted model: two calls that leave a trace of themselves, then the answer. */
function work({ body }: RecordedRequest): Reply {
  const turn = body.messages.filter(({ role }) => role === 'assistant').length
  if (turn === CALLS) return { text: ANSWER, delayMs: 10 }
  const code = `
import time
line = f'${turn} {time.time_ns()}'
open('outputs/calls.txt', 'a').write(line + '\\n')
for _ in range(3):
    print('.', end='', flush=True)
    time.sleep(0.03)
print(line)`
  return { reasoning: 'Hm.', toolCalls: [{ name: 'code_execution', args: { code } }] }
}

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let dataDir: string
  let database: string | undefined
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when(/\[works\]/, work)
    database = await createDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r01-'))
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(crashAt?: string): Promise<Server> {
    return startServer({
      provider,
      dataDir,
      ...(database !== undefined && { database }),
      config: { limits: { ...ROOMY, runningPerProject: 100 } },
      env: { ERRAND_LEASE_S: `${LEASE_S}`, ...(crashAt !== undefined && { ERRAND_CRASH_AT: crashAt }) },
      ...(server && { key: server.key }),
    })
  }

  /** What was acknowledged; a request that the kill cut off was not. */
  async function submit(): Promise<string[]> {
    const body = { instruction: '[works]', tools: ['code_execution'], background: true }
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => server.post('/v1beta/interactions', body).catch(() => undefined)),
    )
    return answers.flatMap((answer) => (answer ? [answer.body.interactionId as string] : []))
  }

  async function checkRight(id: string): Promise<'completed' | 'failed'> {
    const { interaction, events } = await checkEnded(server, id)
    const results = traceOf(events).filter(({ type }) => type === 'tool_result')
    expect(interaction.files).toMatchObject([{ name: 'calls.txt' }])
    const calls = await (await fetch(interaction.files[0].url)).text()
    const lines = calls.trim().split('\n')
    const error = JSON.stringify(interaction.error)
    expect(
      results.map(({ output }) => output),
      error,
    ).toEqual(lines.map((line) => `...${line}`))
    expect(results, error).toHaveLength(CALLS)
    expect(interaction.warnings).toEqual([])
    if (interaction.status === 'completed') expect(interaction.output).toBe(ANSWER.join(''))
    else {
      // An answer that had begun to be shown is never started over.
      expect(interaction.error.message).toContain('never started over')
      expect(ANSWER.join('').startsWith(interaction.output)).toBe(true)
      expect(interaction.output).not.toBe('')
    }
    return interaction.status
  }

  test('kill -9 anywhere loses nothing, repeats nothing, and the next server goes on', {
    timeout: ROUNDS * 60_000,
  }, async () => {
    const tally = { kills: 0, runs: 0, completed: 0, failed: 0 }
    let slowest = 0
    for (let round = 0; round < ROUNDS; round++) {
      const ids = await submit()
      await sleep(random.whole(0, 600))
      await server.stop('SIGKILL')
      const [point, often] = random.pick(POINTS)
      // It goes on with what the one before it left, and may come to its point before it listens.
      const doomed = await start(`${point}:${random.whole(1, often)}`).catch(() => undefined)
      if (doomed) {
        server = doomed
        ids.push(...(await submit()))
        // Until it is gone; the point may lie behind the last of what they do.
        await Promise.all(ids.map((id) => ended(server, id))).catch(() => {})
        await server.stop('SIGKILL')
      }
      const killedAt = performance.now()
      server = await start()
      for (const id of ids) await ended(server, id)
      slowest = Math.max(slowest, performance.now() - killedAt)
      for (const id of ids) tally[await checkRight(id)]++
      tally.kills += 2
      tally.runs += ids.length
    }
    const ends = "select count(*) as ends from interactions where status <> 'running'"
    const [[counted], [stored]] = [
      await server.stored.query(
        'select sum(runs) as runs from (select runs from usage union all select runs from usage_ends) as counted',
      ),
      await server.stored.query(ends),
    ]
    expect(Number(counted!.runs)).toBe(Number(stored!.ends))
    figure('R1', 'kill -9, of which half at a named point', tally.kills)
    figure('R1', 'runs lost, stuck or with a tool call run twice, of runs', `0 of ${tally.runs}`)
    figure('R1', 'went on and completed, failed as their answer had begun', `${tally.completed}, ${tally.failed}`)
    figure('R1', 'ends that count in what was used, of those that are stored', `${counted!.runs} of ${stored!.ends}`)
    figure('R1', 'slowest end of all after the kill, s', (slowest / 1_000).toFixed(1))
    expect(slowest).toBeLessThan((LEASE_S + 15) * 1_000)
  })
})
