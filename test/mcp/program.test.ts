/**
 * MCP servers that the operator registered: a command that runs in its own sandbox, or a URL with the operator's token.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { type FakeMcp, openFakeMcp } from './fake-mcp.ts'

const SECRET = 'operators-own-s3cret-77aa'
const TOKEN = 'operators-mcp-t0ken-91bc'
const MODULES = dirname(
  dirname(dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json'))),
)
const MAIN = join('/opt/mcp/node_modules', '@modelcontextprotocol/server-everything/dist/index.js')

let provider: FakeProvider
let remote: FakeMcp
let server: Server
beforeAll(async () => {
  ;[provider, remote] = await Promise.all([openFakeProvider(), openFakeMcp()])
  const everything = {
    command: ['node', MAIN, 'stdio'],
    mounts: [{ source: MODULES, target: '/opt/mcp/node_modules' }],
    env: { PLAIN: 'as written' },
    envFrom: ['NOTES_TOKEN', 'NOT_SET'],
    limits: { memoryMiB: 512 },
  }
  const fetcher = {
    command: ['node', '/opt/fetcher/fetcher.mjs'],
    mounts: [{ source: join(import.meta.dirname, 'program'), target: '/opt/fetcher' }],
    // Node resolves every name below localhost to this machine; the guard does not.
    env: { NO_PROXY: '', no_proxy: '' },
  }
  const port = new URL(remote.url).port
  server = await startServer({
    provider,
    env: { NOTES_TOKEN: SECRET, REMOTE_TOKEN: TOKEN },
    config: {
      egress: { allowPrivate: [remote.address] },
      mcp: {
        every: everything,
        fetcher: { ...fetcher, network: [`notes.localhost:${port}`] },
        alone: fetcher,
        frail: { ...fetcher, command: ['node', '/opt/fetcher/frail.mjs'] },
        narrow: { ...everything, allowedTools: ['echo', 'get-sum'], requireApproval: ['get-sum'] },
        broken: { command: ['no-such-program'] },
        failing: { command: ['bash', '-c', 'echo the disk is on fire >&2; exit 3'] },
        remote: { url: remote.url, authentication: { type: 'bearer', tokenEnv: 'REMOTE_TOKEN' } },
        unset: { url: remote.url, authentication: { type: 'bearer', tokenEnv: 'NEVER_SET' } },
      },
    },
  })
})
afterAll(async () => {
  await server?.stop()
  await remote?.close()
  await provider?.close()
})

let runs = 0
async function run(mcp: object[], calls: readonly { name: string; args: object }[] = [], rest: object = {}) {
  const marker = `[program ${++runs}]`
  provider.when(marker, ...calls.map((call) => ({ toolCalls: [call] })), { text: 'Done.' })
  const asked = provider.requests.length
  const answer = await server.post('/v1beta/interactions', { instruction: marker, mcp, ...rest })
  const { body } = answer
  const request = provider.requests[asked]?.body
  const outputs = (body.executionTrace ?? [])
    .filter(({ type }: { type: string }) => type === 'tool_result')
    .map(({ output }: { output: string }) => output) as string[]
  return { answer, body, outputs, offered: (request?.tools ?? []).map((tool) => tool.function.name) }
}

describe('a command', () => {
  it('runs in a sandbox of its own with the configured environment', async () => {
    const { body, offered, outputs } = await run(
      [{ name: 'every' }],
      [
        { name: 'every__echo', args: { message: 'through stdio' } },
        { name: 'every__get-env', args: {} },
        { name: 'code_execution', args: { language: 'bash', code: 'env; ls /opt/mcp; ps aux | grep -c everythin[g]' } },
      ],
      { tools: ['code_execution'] },
    )
    expect(body.status).toBe('completed')
    expect(body.warnings).toEqual([])
    expect(offered).toContain('every__echo')
    expect(outputs[0]).toBe('Echo: through stdio')
    expect(outputs[1]).toContain('"PLAIN": "as written"')
    // The program received the secret and sent it back; the model and the trace don't show it.
    expect(outputs[1]).toContain('"NOTES_TOKEN": "[secret]"')
    expect(outputs[2]).not.toContain('NOTES_TOKEN')
    expect(outputs[2]).not.toContain('@modelcontextprotocol')
    expect(outputs[2]).toMatch(/^0$/m)
    expect(JSON.stringify(body)).not.toContain(SECRET)
    expect(JSON.stringify(provider.requests.map((request) => request.body))).not.toContain(SECRET)
  })

  it('is restarted for the next call if it exits during one, and that call is not repeated', async () => {
    const call = (name: string) => ({ name: `frail__${name}`, args: {} })
    const { body, outputs } = await run([{ name: 'frail' }], [call('count'), call('count'), call('end'), call('count')])
    expect(body.status).toBe('completed')
    expect(outputs.toSpliced(2, 1)).toEqual(['1', '2', '1'])
    expect(outputs[2]).toContain('Whether the call had an effect is not known.')
  })

  it('offers a caller only what the operator allows', async () => {
    const mcp = [{ name: 'narrow', allowedTools: ['echo', 'get-env'], requireApproval: 'never' }]
    expect((await run(mcp)).offered).toEqual(['narrow__echo'])
    const waits = await run([{ name: 'narrow', requireApproval: 'never' }], [{ name: 'narrow__get-sum', args: {} }], {
      background: true,
    })
    const path = `/v1beta/interactions/${waits.body.id}`
    await expect.poll(async () => (await server.get(path)).body.stage, { timeout: 30_000 }).toBe('requires_action')
    expect((await server.post(`${path}:cancel`)).body.status).toBe('cancelled')
  })

  it('reaches only the hosts that the operator allows', async () => {
    const { port } = new URL(remote.url)
    remote.intercept = ({ httpMethod }, response) => {
      if (httpMethod === 'GET') response.end('notes here')
      return httpMethod === 'GET'
    }
    const places = [`http://notes.localhost:${port}/`, `http://other.localhost:${port}/`]
    const calls = ['fetcher', 'alone'].flatMap((name) =>
      places.map((url) => ({ name: `${name}__fetch`, args: { url } })),
    )
    const { outputs } = await run([{ name: 'fetcher' }, { name: 'alone' }], calls)
    remote.intercept = () => false
    expect(outputs[0]).toBe('200 notes here')
    expect(outputs[1]).toContain('failed')
    expect(outputs[2]).toContain('failed')
    expect(outputs[3]).toContain('failed')
    expect(remote.requests.filter(({ httpMethod }) => httpMethod === 'GET')).toHaveLength(1)
    remote.requests.length = 0
  })

  it('warns with its error output if it is missing or fails', async () => {
    const { body } = await run([{ name: 'broken' }, { name: 'failing' }])
    expect(body.status).toBe('completed')
    expect(body.warnings.map(({ code }: { code: string }) => code)).toEqual(['mcp_unavailable', 'mcp_unavailable'])
    expect(JSON.stringify(body.warnings)).toContain('the disk is on fire')
  })
})

describe('a registered address', () => {
  it('is sent the operator’s token, which is not shown anywhere', async () => {
    const { body, outputs } = await run([{ name: 'remote' }], [{ name: 'remote__say', args: { a: 1 } }])
    expect(outputs).toEqual(['{"a":1}'])
    expect(new Set(remote.requests.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${TOKEN}`]))
    expect(body.resolved.mcp).toEqual([{ name: 'remote' }])
    expect(server.output()).not.toContain(TOKEN)
  })

  it('warns with the name of a variable that is not set', async () => {
    const { body } = await run([{ name: 'unset' }])
    expect(body.warnings).toMatchObject([{ message: expect.stringContaining('NEVER_SET') }])
  })

  it('warns about an unregistered name, or answers 400 in strict mode', async () => {
    const { body } = await run([{ name: 'stranger' }])
    expect(body).toMatchObject({ status: 'completed', warnings: [{ code: 'mcp_unavailable', param: 'mcp[0]' }] })
    const strict = await server.post(
      '/v1beta/interactions',
      { instruction: 'x', mcp: [{ name: 'stranger' }] },
      { prefer: 'handling=strict' },
    )
    expect(errorOf(strict)).toMatchObject({ status: 400, param: 'mcp[0]' })
  })
})
