/** Checks that a server that is killed while it shortens a conversation resumes with exactly the same requests. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TURNS = 8

let provider: FakeProvider
let server: Server | undefined
let dataDir: string
beforeEach(async () => {
  provider = await openFakeProvider({ counts: true, window: 14_000, pairsCalls: true })
  dataDir = await mkdtemp(join(tmpdir(), 'errand-context-'))
})
afterEach(async () => {
  await server?.stop()
  server = undefined
  await provider.close()
  await rm(dataDir, { recursive: true, force: true })
})

async function start(crashAt?: string): Promise<Server> {
  const models = { small: { ...provider.model, contextWindow: 14_000 } }
  server = await startServer({
    provider,
    dataDir,
    config: { models, limits: ROOMY },
    env: { ERRAND_LEASE_S: '1', ...(crashAt !== undefined && { ERRAND_CRASH_AT: crashAt }) },
    ...(server && { key: server.key }),
  })
  return server
}

const isSummary = ({ body }: RecordedRequest) => String(body.messages.at(-1)!.content).includes('by the summary')
const turnOf = ({ body }: RecordedRequest) =>
  Math.max(0, ...[...JSON.stringify(body.messages).matchAll(/turn-(\d+)/g)].map(([, turn]) => Number(turn)))

/** Each turn calls a tool with long arguments, which only a summary removes, and short output. */
function works(onSummary: () => void = () => {}): void {
  provider.when('[task]', (request) => {
    const turn = turnOf(request)
    if (isSummary(request)) {
      onSummary()
      return { text: `Summary through turn-${turn}.` }
    }
    if (turn === TURNS) return { text: 'Done.' }
    const code = `print('turn-${turn + 1}')  # ${'long '.repeat(1_200)}`
    return { toolCalls: [{ name: 'code_execution', args: { code }, id: `call-${turn + 1}` }] }
  })
}

async function begin(): Promise<string> {
  const body = { instruction: '[task]', model: 'small', tools: ['code_execution'], background: true }
  return (await server!.post(PATH, body)).body.interactionId
}

/** Messages of the accepted requests that are not for a summary, each once, in order. */
function requests(): string[] {
  const texts = provider.requests
    .filter((request) => request.refused === undefined && !isSummary(request))
    .map(({ body }) => JSON.stringify(body.messages))
  return [...new Set(texts)]
}

async function reference(): Promise<string[]> {
  works()
  const first = await start()
  await ended(first, await begin())
  const sent = requests()
  provider.reset()
  await first.stop('SIGKILL')
  return sent
}

async function checkFinished(server: Server, id: string): Promise<void> {
  await ended(server, id)
  const { interaction, events } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.', warnings: [] })
  const compactions = events.filter(({ event }) => event === 'context_compacted')
  expect(compactions.length).toBeGreaterThan(0)
  const rows = await server.stored.query(
    "select at_seq from turns where interaction_id = ? and finish = 'summary' order by turn",
    id,
  )
  expect(rows.map(({ at_seq }) => String(at_seq))).toEqual(compactions.map(({ id }) => id))
  const [stored] = await server.stored.query('select count(*) as calls from turns where interaction_id = ?', id)
  expect(interaction.usage.model_calls).toBe(Number(stored!.calls))
}

it.each(['summarized', 'context-edited'])('sends the same requests after SIGKILL at %s', async (point) => {
  const expected = await reference()
  works()
  const dying = await start(point)
  const id = await begin()
  await until(() => dying.process.signalCode !== null)
  await checkFinished(await start(), id)
  expect(requests()).toEqual(expected)
})

it('sends the same requests after SIGKILL while the summary is written', async () => {
  const expected = await reference()
  let killed = false
  works(() => {
    if (!killed) dying?.process.kill('SIGKILL')
    killed = true
  })
  const dying = await start()
  const id = await begin()
  await until(() => dying.process.signalCode !== null)
  await checkFinished(await start(), id)
  expect(requests()).toEqual(expected)
})
