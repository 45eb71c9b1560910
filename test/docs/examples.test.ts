/** Runs the examples of the API reference exactly as shown, in order. Each language has its own project. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BEGINNINGS, curl, EXAMPLES } from '../../site/examples.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type OpenApi, openApiOf } from '../support/openapi.ts'
import { type Server, startServer } from '../support/server.ts'
import { skillText, zip } from '../support/zip.ts'
import { keep, kept, RECORDING, sampleOf, shapeOf } from './samples.ts'
import { openSnippetRunner, type SnippetRunner } from './snippet-runner.ts'

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
let api: OpenApi
const code = (text: string) => ({ toolCalls: [{ name: 'code_execution', args: { code: text } }] })
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [{ name: 'close_issue', annotations: { readOnlyHint: false } }]
  // The webhook receiver does not respond before the example reads the deliveries.
  mcp.onCall = () => undefined
  provider.when('17 * 23', code('print(17 * 23)'), { text: '17 * 23 = 391' })
  provider.when(RUNS.ended.instruction, code('open("outputs/region.txt", "w").write("north")'), { text: 'North.' })
  provider.when(RUNS.running.instruction, code('import time; time.sleep(600)'))
  provider.when(RUNS.waiting.instruction, { toolCalls: [{ name: 'tracker__close_issue', args: { issue: 7 } }] })
  server = await startServer({ provider, config: { egress: { allowPrivate: [mcp.address] } } })
  api = await openApiOf(server.url)
})
afterAll(async () => {
  await server?.stop()
  await mcp?.close()
  await provider?.close()
})

const RUNS = {
  ended: {
    instruction: 'Which region sold most in sales.csv? Write its name into outputs/region.txt.',
    files: [{ name: 'sales.csv', content: 'region,total\nnorth,10\nsouth,7\n' }],
  },
  running: { instruction: 'Wait for ten minutes.', background: true },
  waiting: { instruction: 'Close issue 7.', background: true },
} as const

/** The state that the example's run must have. */
function stateFor(id: string): keyof typeof RUNS {
  if (id.startsWith('cancel')) return 'running'
  return id.startsWith('approve') ? 'waiting' : 'ended'
}

/** Starts a run in the project of the key. Resolves when the run has that state. */
async function openRun(key: string, state: keyof typeof RUNS) {
  const call = async (method: string, path: string, body?: object) =>
    (await server.request(method, `/v1beta/interactions${path}`, body, { 'x-svc-api-key': key })).body
  const { id } = await call('POST', '', {
    ...RUNS[state],
    tools: ['code_execution'],
    mcp: [{ name: 'tracker', url: mcp.url, requireApproval: true }],
    webhook: { url: `http://${mcp.address}/errand` },
  })
  const reached = {
    ended: async () => (await call('GET', `/${id}/deliveries`)).deliveries.length > 0,
    running: async () => (await call('GET', `/${id}`)).executionTrace.length > 0,
    waiting: async () => (await call('GET', `/${id}`)).stage === 'requires_action',
  }
  await expect.poll(reached[state], { timeout: 30_000 }).toBe(true)
  return call('GET', `/${id}`)
}

/** Operations that return pages or files. Their responses are not recorded. */
const WITHOUT_SAMPLE = ['openapi', 'docs', 'downloadFile', 'downloadInputFile']
/** Operations that need no key, for probes and browsers. */
const KEYLESS = ['healthz', 'readyz', 'openapi', 'docs', 'downloadInputFile']

const operationOf = (id: string) => api.operations().find(([, , { operationId }]) => operationId === id)!

test('run in sh, and return the recorded responses', { timeout: 600_000 }, async () => {
  const key = await server.createKey('examples-sh')
  const runner = await openGreeting(key)
  const answers: Record<string, unknown> = {}
  try {
    const ended = await openRun(key, 'ended')
    const places = {
      [server.url]: 'http://127.0.0.1:8080',
      [mcp.url]: 'https://tracker.example/mcp',
      [`http://${mcp.address}`]: 'https://hooks.example',
      [`"host":"127.0.0.1","port":${mcp.address.split(':')[1]}`]: '"host":"tracker.example","port":443',
    }
    for (const id of [...KEYLESS, ...EXAMPLES.map(({ id }) => id)]) {
      const run = stateFor(id) === 'ended' ? ended : await openRun(key, stateFor(id))
      const file = (id === 'downloadInputFile' ? ended.resolved.files : ended.files)[0]
      const [method, path, doc] = operationOf(id)
      await runner.run('sh', `export INTERACTION_ID=${run.id} FILE_URL='${file.url}'`)
      const printed = await runner.run('sh', curl({ method: method.toUpperCase(), path, doc: doc as never }))
      if (!WITHOUT_SAMPLE.includes(id)) answers[id] = sampleOf(printed, places)
    }
  } finally {
    runner.close()
  }
  if (RECORDING) keep(answers)
  const samples = kept()
  expect(Object.keys(samples)).toEqual(Object.keys(answers))
  for (const [id, sample] of Object.entries(samples)) {
    const [method, path] = operationOf(id)
    if (typeof sample === 'object') {
      const place = api.schemaPlace(method, path.replaceAll(/\{[^}]*\}/g, '{}'), 200, 'application/json')
      expect(api.complaints(place, sample), id).toBe('')
    }
    // The response of getServer depends on the machine.
    if (id !== 'getServer')
      expect(shapeOf(answers[id]), `${id}: test/docs/samples.ts says how to record it again`).toEqual(shapeOf(sample))
  }
})

test.each(['ts', 'python'] as const)('run in %s', { timeout: 600_000 }, async (language) => {
  const key = await server.createKey(`examples-${language}`)
  const runner = await openGreeting(key)
  try {
    const ended = await openRun(key, 'ended')
    for (const { id, ts, python } of EXAMPLES) {
      const run = stateFor(id) === 'ended' ? ended : await openRun(key, stateFor(id))
      const name = language === 'ts' ? 'const interactionId' : 'interaction_id'
      const program = language === 'ts' ? ts : python
      await runner.run(language, `${BEGINNINGS[language]}\n${name} = '${run.id}'\n${program}\n`)
    }
  } finally {
    runner.close()
  }
})

async function openGreeting(key: string): Promise<SnippetRunner> {
  const runner = openSnippetRunner({ ...server, key })
  await runner.run('sh', 'cd ~')
  runner.write('greeting.zip', zip([{ name: 'SKILL.md', data: skillText('greeting', 'Greets.') }]))
  return runner
}

test('exist for every operation, in curl and in both clients', () => {
  const named = [...KEYLESS, ...EXAMPLES.map(({ id }) => id)]
  expect(named.sort()).toEqual(
    api
      .operations()
      .map(([, , { operationId }]) => operationId)
      .sort(),
  )
})
