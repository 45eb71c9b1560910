/**
 * Checks `web_search` by the model's own provider: its searches are steps of the run and survive a restart of the
 * server.
 */
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { CLAUDE_SEARCH, claudeCallAfterSearch, claudeSays, geminiSearches } from '../support/provider-search.ts'
import { type Server, startServer } from '../support/server.ts'

const LEASE = { ERRAND_LEASE_S: '2', CLAUDE_KEY: 'key' }

let claude: HttpServer
let provider: FakeProvider
let server: Server
const asked: string[] = []
const answers: (string | undefined)[] = []

beforeAll(async () => {
  claude = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    asked.push(Buffer.concat(chunks).toString())
    const answer = answers.shift()
    // Undefined: the server never answers.
    if (answer) response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answer)
  })
  claude.listen(0, '127.0.0.1')
  await once(claude, 'listening')
  provider = await openFakeProvider()
  const baseUrl = `http://127.0.0.1:${(claude.address() as AddressInfo).port}/v1`
  const models = {
    claude: { provider: 'anthropic', model: 'claude-opus-5-5', baseUrl, apiKeyEnv: 'CLAUDE_KEY' },
    gemini: { provider: 'google', model: 'gemini-3.8-flash', baseUrl, apiKeyEnv: 'CLAUDE_KEY' },
    plain: { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' },
  }
  server = await startServer({ config: { models, search: { provider: 'model' }, sandbox: { pool: 0 } }, env: LEASE })
})
afterAll(async () => {
  await server?.stop()
  if (server) await rm(server.dataDir, { recursive: true, force: true })
  await provider?.close()
  claude.closeAllConnections()
  claude.close()
})

test('provider searches are in the trace and the stream, and after a restart the next server sends them back to the provider', async () => {
  answers.push(
    claudeCallAfterSearch('I look.', 'otters', 'code_execution', { code: 'print(6 * 7)' }),
    undefined,
    claudeSays('Otters play.'),
  )
  const body = {
    model: 'claude',
    instruction: 'What of otters?',
    tools: ['web_search', 'code_execution'],
    background: true,
  }
  const id = (await server.post('/v1beta/interactions', body)).body.interactionId
  while (asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
  const { dataDir, key } = server
  await server.stop('SIGKILL')
  server = await startServer({ dataDir, key, env: LEASE })
  const events = await (await server.stream(`/v1beta/interactions/${id}:stream`)).all()
  const got = (await server.get(`/v1beta/interactions/${id}`)).body
  expect(got).toMatchObject({ status: 'completed', output: 'Otters play.', warnings: [], usage: { tool_calls: 2 } })
  expect(got.executionTrace).toMatchObject([
    { step: 1, type: 'reasoning', content: 'I look.' },
    { step: 2, type: 'tool_call', name: 'web_search', args: { query: 'otters' } },
    { step: 3, type: 'tool_result', output: expect.stringContaining('1. Otters\n   https://otters.example/') },
    { step: 4, type: 'tool_call', name: 'code_execution' },
    { step: 5, type: 'tool_result', output: '42' },
  ])
  const names = events.map(({ event }) => event).filter((name) => name.startsWith('tool_'))
  expect(names).toEqual(['tool_call', 'tool_result', 'tool_call', 'tool_output', 'tool_result'])
  // Sealed content is only for the provider and must not be shown.
  expect(JSON.stringify([got, events])).not.toContain('SEALED')
  const [, use, result] = CLAUDE_SEARCH
  const [second, third] = asked.slice(1).map((request) => JSON.parse(request).messages)
  expect(third).toEqual(second)
  expect(third[1].content).toMatchObject([
    { type: 'text' },
    { ...use, input: { query: 'otters' } },
    result,
    { type: 'tool_use', name: 'code_execution' },
  ])
})

test('the sources of a grounded answer are in the trace, and the answer is unchanged', async () => {
  answers.push(geminiSearches('They play'))
  const request = { model: 'gemini', instruction: 'What of otters?', tools: ['web_search'] }
  const { body } = await server.post('/v1beta/interactions', request)
  expect(body).toMatchObject({ status: 'completed', output: 'They play.', usage: { tool_calls: 1 } })
  expect(body.executionTrace).toMatchObject([
    { step: 1, type: 'tool_call', name: 'web_search', args: { queries: ['otters', 'sea otters'] } },
    { step: 2, type: 'tool_result', output: expect.stringContaining('1. otters.example') },
  ])
})

test('the tool is not offered to a model whose provider cannot search, and the caller gets a warning', async () => {
  provider.when('[plain]', { text: 'Without.' })
  const { body } = await server.post('/v1beta/interactions', {
    model: 'plain',
    instruction: '[plain]',
    tools: ['web_search'],
  })
  expect(body).toMatchObject({ status: 'completed', warnings: [{ code: 'tool_unavailable', param: 'tools[0]' }] })
  expect(provider.requests.at(-1)!.body.tools).toBeUndefined()
})

test('the doctor reports that the models search by themselves', async () => {
  const { stdout } = await server.errand(['doctor'])
  expect(stdout).toMatch(/Available: .*web_search/)
  expect(stdout).toMatch(/Web search: the models' own/)
})
