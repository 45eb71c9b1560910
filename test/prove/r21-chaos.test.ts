/**
 * R21: random faults, all at once. Servers (on Postgres two on one database) and their sandbox hosts are killed
 * repeatedly, runs are canceled, and streams are dropped and resumed. Callers retry with their idempotency key until
 * they get a response. In the end no interaction is lost, duplicated or stuck, and no process is left.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, type RecordedRequest, type Reply, restOf } from '../fake-provider.ts'
import { cgroupsOf, hostPid, scratchOf } from '../sandbox/fixture.ts'
import { processesWith, stubbornTree } from '../support/processes.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { onEveryStore } from './stores.ts'

const PATH = '/v1beta/interactions'
const RUNS = rounds(600, 20)
const AT_ONCE = 6
const LEASE_S = 2
/** Time for the remaining runs to end after the last kill. */
const ENDED_WITHIN_MS = (LEASE_S + 15) * 1_000
const CANCELLED = 0.25
const HOST_KILLED = 0.2
const ANSWER = [`${'One '.repeat(80)}, `, 'two, ', 'three.']
const KINDS = ['[works]', '[works]', '[talks]', '[stubborn]'] as const
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/
const random = seeded('R21')

interface Run {
  readonly id: string
  readonly kind: string
  /** HTTP status of the cancellation. Undefined if the run was not canceled. */
  readonly cancelled: number | undefined
  readonly seen: readonly WireEvent[]
}

const call = (code: string) => ({ toolCalls: [{ name: 'code_execution', args: { code } }] })

/** The answer, or the rest of it if the next worker asks the model to continue. */
function answer(request: RecordedRequest): Reply {
  const rest = restOf(ANSWER.join(''), request)
  return { reasoning: 'Hm.', text: rest.match(/.{1,80}/g)!, delayMs: 20 }
}

/** Two tool calls, each with a unique result, then the answer. */
function work(request: RecordedRequest): Reply {
  const turn = request.body.messages.filter(({ role }) => role === 'assistant').length
  return turn >= 2 ? answer(request) : call('import uuid, time; time.sleep(0.1); print(uuid.uuid4())')
}

onEveryStore((createDatabase) => {
  const mark = `mark-${randomUUID()}`
  let provider: FakeProvider
  let database: string | undefined
  let blobs: string
  let dirs: string[]
  let key: string
  /** The server of each node. Undefined while it is killed. */
  const nodes: (Server | undefined)[] = []
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when(/\[works\]/, work)
    provider.when(/\[talks\]/, answer)
    provider.when(/\[stubborn\]/, (request) =>
      request.body.messages.some(({ role }) => role === 'assistant') ? answer(request) : call(stubbornTree(mark)),
    )
    database = await createDatabase()
    blobs = await mkdtemp(join(tmpdir(), 'errand-r21-'))
    const count = database === undefined ? 1 : 2
    dirs = await Promise.all(Array.from({ length: count }, () => mkdtemp(join(tmpdir(), 'errand-r21-'))))
    for (let i = 0; i < count; i++) {
      nodes[i] = await start(i)
      key = nodes[i]!.key
    }
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node?.stop()))
    await provider?.close()
    for (const dir of [blobs, ...(dirs ?? [])]) await rm(dir, { recursive: true, force: true })
  })

  function start(i: number): Promise<Server> {
    return startServer({
      provider,
      dataDir: dirs[i]!,
      ...(database !== undefined && { database }),
      config: { limits: { ...ROOMY, runningPerProject: 100 } },
      env: { ERRAND_LEASE_S: `${LEASE_S}`, ERRAND_BLOBS_URL: `file://${blobs}` },
      ...(key !== undefined && { key }),
    })
  }

  /** Retries on any node until one returns a result: it is neither down nor busy. */
  async function ask<T>(question: (node: Server) => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const node = random.pick(nodes)
      const answer = node && (await question(node).catch(passOver))
      if (answer !== undefined) return answer
      await sleep(50)
    }
  }

  /** Ignores errors of a server that is down, and throws others. */
  function passOver(error: Error): undefined {
    if (!/fetch failed|terminated/.test(error.message)) throw error
  }

  async function submit(kind: string): Promise<string> {
    const headers = { 'idempotency-key': randomUUID() }
    const body = { instruction: `${kind} ${headers['idempotency-key']}`, tools: ['code_execution'], background: true }
    // A run that ignores signals ends only at its deadline or when it is canceled.
    const policy = { maxTurnDuration: 4 }
    return ask(async (node) => {
      const answer = await node.post(PATH, kind === '[stubborn]' ? { ...body, policy } : body, headers)
      if (answer.status >= 500) return undefined
      expect(answer.status, answer.text).toBe(200)
      return answer.body.interactionId as string
    })
  }

  /** Reads to the end. Resumes after every disconnect, its own or the server's. */
  async function read(id: string): Promise<WireEvent[]> {
    const seen: WireEvent[] = []
    while (seen.at(-1)?.event !== 'completed') {
      await ask(async (node) => {
        const leaveAt = seen.length + random.whole(1, 12)
        const stream = await node.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': `${seen.length}` })
        for await (const event of stream.events) {
          seen.push(event)
          if (seen.length === leaveAt && event.event !== 'completed') break
        }
        stream.drop()
        return true
      })
    }
    return seen
  }

  /** Returns 200 if the run has ended and no process of it is left, 409 if it had already ended. */
  async function cancel(id: string): Promise<number> {
    await sleep(random.whole(0, 1_500))
    return ask(async (node) => {
      const { status } = await node.post(`${PATH}/${id}:cancel`)
      return status < 500 ? status : undefined
    })
  }

  async function kill(i: number): Promise<void> {
    const node = nodes[i]!
    nodes[i] = undefined
    if (random.next() < HOST_KILLED) {
      try {
        process.kill(hostPid(dirs[i]!), 'SIGKILL')
      } catch {
        // The previous host was killed, and no run has needed a new one since.
      }
    }
    await node.stop('SIGKILL')
    await sleep(random.whole(0, 1_000))
    nodes[i] = await start(i)
  }

  test('no interaction is lost, duplicated, stuck or left behind', { timeout: 60_000 + RUNS * 10_000 }, async () => {
    const runs: Run[] = []
    let left = RUNS
    let kills = 0
    const lanes = Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0) runs.push(await oneRun())
      }),
    )
    let killing = true
    let lastKillAt = 0
    const killer = (async () => {
      for (; killing; kills++) {
        await sleep(random.whole(300, 3_000))
        await kill(random.whole(0, nodes.length - 1))
        lastKillAt = performance.now()
        killing = left > 0
      }
    })()
    await Promise.race([lanes, killer])
    await Promise.all([lanes, killer])
    const endedAfter = performance.now() - lastKillAt

    const tally: Record<string, number> = { completed: 0, cancelled: 0 }
    for (const run of runs) {
      const ending = await checkRight(run)
      tally[ending] = (tally[ending] ?? 0) + 1
    }
    expect(new Set(runs.map(({ id }) => id)).size).toBe(RUNS)
    expect(await countAll()).toBe(RUNS)
    await Promise.all(nodes.splice(0).map((node) => node?.stop()))
    expect(await processesWith(mark)).toEqual([])
    for (const dir of dirs) {
      expect(existsSync(scratchOf(dir))).toBe(false)
      expect(cgroupsOf(dir) ?? []).toEqual([])
    }
    expect(endedAfter).toBeLessThan(ENDED_WITHIN_MS)
    figure('R21', `kill -9, runs (${database === undefined ? 'one server' : 'two servers'})`, `${kills}, ${RUNS}`)
    figure('R21', 'how they ended', JSON.stringify(tally))
    figure('R21', 'lost, doubled, stuck or left behind', 0)
  })

  async function oneRun(): Promise<Run> {
    const kind = random.pick(KINDS)
    const id = await submit(kind)
    const [seen, cancelled] = await Promise.all([read(id), random.next() < CANCELLED ? cancel(id) : undefined])
    return { id, kind, cancelled, seen }
  }

  /** Returns the final status. Throws if it is not the expected one. */
  async function checkRight({ id, kind, cancelled, seen }: Run): Promise<string> {
    const { interaction, events } = await checkEnded(nodes[0]!, id, seen)
    const { status, output, error } = interaction
    expect(status === 'cancelled').toBe(cancelled === 200)
    expect(ANSWER.join('').startsWith(output)).toBe(true)
    if (status === 'completed') expect(output).toBe(ANSWER.join(''))
    // A finished call that ran twice would have printed another line.
    const printed = events.flatMap(({ event, data }) => (event === 'tool_result' ? (UUID.exec(data.output) ?? []) : []))
    expect(new Set(printed).size).toBe(printed.length)
    if (status !== 'failed') return status
    if (kind === '[stubborn]') expect(error.code).toBe('deadline_exceeded')
    else expect(error.message).toMatch(/never started over|The server stopped 3 times/)
    return error.code
  }

  /**
   * Number of the project's runs, without those that a retry started after the first had failed. A request that was
   * accepted twice would add one.
   */
  async function countAll(): Promise<number> {
    let count = 0
    let pageToken: string | undefined
    do {
      const { body } = await nodes[0]!.get(`${PATH}?pageSize=100${pageToken ? `&pageToken=${pageToken}` : ''}`)
      count += body.interactions.filter(({ retryOf }: { retryOf?: string }) => retryOf === undefined).length
      pageToken = body.nextPageToken
    } while (pageToken)
    return count
  }
})
