/**
 * R1: kill -9 of the server, at a named point or at a moment that nobody chose, under runs that think, run code and answer.
 * The next server ends each as it should, and no finished tool call was run again: each call appends a line with the time
 * to a file in outputs/, and prints it; what the trace says must be what the file says.
 *
 * The first model fails now and then and is billed for it, and a fallback answers. Each such call is stored and counted, and
 * a server that goes on asks no model again and again.
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
/** On each store; two kills a round: one at a random moment, one at a named point. */
const ROUNDS = rounds(50, 2)
/** Its first fragment is too long to be held back. */
const ANSWER = [`${'One '.repeat(80)}, `, 'two, ', 'three.']
const random = seeded('R1')

/** Each named point, with how often a batch of runs comes to it. */
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

/** The scripted models: two calls that leave a trace of themselves, then the answer, or the rest of it. */
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

  /** What was acknowledged; a request that the kill cut off was not. */
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

  test('kill -9 anywhere loses nothing, repeats nothing, and the next server goes on', {
    timeout: ROUNDS * 60_000,
  }, async () => {
    const tally = { kills: 0, runs: 0 }
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
    // A worker that is killed leaves at most a failed call and the fallback's without their turns.
    expect(modelCalls).toBeLessThanOrEqual(Number(turns) + 2 * Number(claims))
    expect(Number(failed)).toBeGreaterThan(0)
    figure('R1', 'model calls, stored, billed though they failed', `${modelCalls}, ${turns}, ${failed}`)
    figure('R1', 'kill -9, of which half at a named point', tally.kills)
    figure('R1', 'runs lost, failed, stuck or with a tool call run twice, of runs', `0 of ${tally.runs}`)
    figure('R1', 'answers that are exact, of runs', `${tally.runs} of ${tally.runs}`)
    figure('R1', 'ends that count in what was used, of those that are stored', `${counted!.runs} of ${stored!.ends}`)
    figure('R1', 'slowest end of all after the kill, s', (slowest / 1_000).toFixed(1))
    expect(slowest).toBeLessThan((LEASE_S + 15) * 1_000)
  })
})
