/**
 * R1: kill -9 of the server, at a named crash point or at a random moment, while runs think, run code and answer. The
 * next server completes each run and repeats no finished tool call. Each call appends a line with the time to a file in
 * outputs/ and prints it; the trace must match the file.
 *
 * The first model sometimes fails after using billed tokens, and a fallback answers. Each such call is stored and
 * counted, and the number of repeated calls is bounded.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CrashPoint } from '../../src/engine/dependencies.ts'
import { checkEnded, ended, ROOMY, traceOf } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, type RecordedRequest, type Reply, restOf } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { onEveryStore } from './stores.ts'

const LEASE_S = 2
const AT_ONCE = 3
const CALLS = 2
/** Rounds on each store. Each round kills twice: at a random moment and at a crash point. */
const ROUNDS = rounds(50, 2)
/** An answer whose first fragment is too long to be buffered. */
const ANSWER = [`${'One '.repeat(80)}, `, 'two, ', 'three.']
const random = seeded('R1')

/** Each crash point, and how often a batch of runs reaches it. */
const POINTS: readonly (readonly [CrashPoint, number])[] = [
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

const BILLED_FAILURE: Reply = { finish: 'error', text: [], usage: { input: 7, output: 0 } }

/** Scripted model: two tool calls that each append a line, then the answer, or the rest of an answer that broke off. */
function work(request: RecordedRequest): Reply {
  const turn = request.body.messages.filter(({ tool_calls }) => tool_calls).length
  if (turn === CALLS) return { text: restOf(ANSWER.join(''), request).match(/^(?:One )+|.{1,6}/g)!, delayMs: 10 }
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
  let fallback: FakeProvider
  let modelCalls = 0
  let dataDir: string
  let database: string | undefined
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    fallback = await openFakeProvider({ record: false })
    for (const [each, failing] of [[provider, 0.3] as const, [fallback, 0] as const]) {
      each.when(/\[works\]/, (request) => {
        modelCalls++
        return random.next() < failing ? BILLED_FAILURE : work(request)
      })
    }
    database = await createDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r01-'))
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await fallback?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(crashAt?: string): Promise<Server> {
    const model = { provider: 'openai-compatible', model: 'fake', maxTries: 1 }
    const models = {
      'svc-3.5-flash': { ...model, baseUrl: provider.url, fallbacks: ['spare'] },
      spare: { ...model, baseUrl: fallback.url },
    }
    return startServer({
      dataDir,
      ...(database !== undefined && { database }),
      config: { models, limits: { ...ROOMY, runningPerProject: 100 } },
      env: { ERRAND_LEASE_S: `${LEASE_S}`, ...(crashAt !== undefined && { ERRAND_CRASH_AT: crashAt }) },
      ...(server && { key: server.key }),
    })
  }

  /** Returns the ids of acknowledged requests. A request that the kill interrupted is not acknowledged. */
  async function submit(): Promise<string[]> {
    const body = { instruction: '[works]', tools: ['code_execution'], background: true }
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => server.post('/v1beta/interactions', body).catch(() => undefined)),
    )
    return answers.flatMap((answer) => (answer ? [answer.body.interactionId as string] : []))
  }

  async function checkRight(id: string): Promise<void> {
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
    expect(interaction.warnings.filter(({ code }: { code: string }) => code !== 'model_fallback')).toEqual([])
    const [stored] = await server.stored.query('select count(*) as calls from turns where interaction_id = ?', id)
    expect(interaction.usage.model_calls).toBe(Number(stored!.calls))
    expect(interaction, error).toMatchObject({ status: 'completed', output: ANSWER.join('') })
  }

  test('after kill -9 at any point the next server completes every run, and loses and repeats nothing', {
    timeout: ROUNDS * 60_000,
  }, async () => {
    const tally = { kills: 0, runs: 0 }
    let slowest = 0
    for (let round = 0; round < ROUNDS; round++) {
      const ids = await submit()
      await sleep(random.whole(0, 600))
      await server.stop('SIGKILL')
      const [point, often] = random.pick(POINTS)
      // The server resumes the previous server's runs, and may reach its crash point before it listens.
      const doomed = await start(`${point}:${random.whole(1, often)}`).catch(() => undefined)
      if (doomed) {
        server = doomed
        ids.push(...(await submit()))
        // Waits until the server is dead. The runs may end before they reach the crash point.
        await Promise.all(ids.map((id) => ended(server, id))).catch(() => {})
        await server.stop('SIGKILL')
      }
      const killedAt = performance.now()
      server = await start()
      for (const id of ids) await ended(server, id)
      slowest = Math.max(slowest, performance.now() - killedAt)
      for (const id of ids) await checkRight(id)
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
    const [sums] = await server.stored.query(
      `select count(*) as turns, sum(case when finish = 'failed' then 1 else 0 end) as failed,
        (select sum(epoch) from interactions) as claims from turns`,
    )
    const { turns, failed, claims } = sums!
    // Each claim can lose at most two billed calls: the failed one and the fallback's.
    expect(modelCalls).toBeLessThanOrEqual(Number(turns) + 2 * Number(claims))
    expect(Number(failed)).toBeGreaterThan(0)
    figure(
      'R1',
      'model calls, of which stored, of which billed although they failed',
      `${modelCalls}, ${turns}, ${failed}`,
    )
    figure('R1', 'kill -9, of which half at a named point', tally.kills)
    figure('R1', 'runs lost, failed, stuck or with a tool call run twice, of runs', `0 of ${tally.runs}`)
    figure('R1', 'answers that are exact, of runs', `${tally.runs} of ${tally.runs}`)
    figure('R1', 'ended runs counted in the usage, of those stored', `${counted!.runs} of ${stored!.ends}`)
    figure('R1', 'longest time from a kill to the end of all runs, s', (slowest / 1_000).toFixed(1))
    expect(slowest).toBeLessThan((LEASE_S + 15) * 1_000)
  })
})
