/**
 * The public MCP client conformance suite, `@modelcontextprotocol/conformance`, against Errand's client
 * (conformance-client.ts). Each scenario starts a server of its own.
 *
 * Not run, because no person is present during a run: `elicitation-sep1034-client-defaults` (input is declined), and
 * `auth/cross-app-access-complete-flow` (a company's identity provider, which knows the person).
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const SUITE = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
)
const CLIENT = join(import.meta.dirname, 'conformance-client.ts')
const SCENARIOS = [
  ...['initialize', 'tools_call', 'sse-retry'],
  ...['metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd'].map(auth),
  ...['scope-from-www-authenticate', 'scope-from-scopes-supported', 'scope-omitted-when-undefined'].map(auth),
  ...['scope-step-up', 'scope-retry-limit', 'pre-registration', 'resource-mismatch'].map(auth),
  ...['token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none'].map(auth),
  ...['2025-03-26-oauth-metadata-backcompat', '2025-03-26-oauth-endpoint-fallback'].map(auth),
  ...['offline-access-scope', 'offline-access-not-supported'].map(auth),
  ...['client-credentials-basic', 'client-credentials-jwt'].map(auth),
]

function auth(name: string): string {
  return `auth/${name}`
}

let provider: FakeProvider
let server: Server
let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'errand-conformance-'))
  provider = await openFakeProvider()
  provider.when('Conformance', ({ body }) => {
    const turn = body.messages.filter(({ role }) => role === 'assistant').length
    const tool = body.tools?.[turn]?.function as Offered | undefined
    return tool ? { toolCalls: [{ name: tool.name, args: argumentsFor(tool) }] } : { text: 'Done.' }
  })
  // The suite's servers choose their ports.
  server = await startServer({ provider, config: { egress: { allowPrivate: ['127.0.0.0/8:*', '[::1]:*'] } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dir, { recursive: true, force: true })
})

interface Offered {
  readonly name: string
  readonly parameters?: { readonly properties?: Readonly<Record<string, { readonly type?: string }>> }
}

function argumentsFor({ parameters }: Offered): object {
  const value = (type?: string) => (type === 'number' || type === 'integer' ? 5 : 'x')
  const properties = Object.entries(parameters?.properties ?? {})
  return Object.fromEntries(properties.map(([name, { type }]) => [name, value(type)]))
}

it.each(SCENARIOS)('passes %s', async (scenario) => {
  const args = [SUITE, 'client', '--command', `${process.execPath} ${CLIENT}`, '--scenario', scenario, '--verbose']
  const child = spawn(process.execPath, args, {
    cwd: dir,
    env: { ...process.env, ERRAND_URL: server.url, ERRAND_KEY: server.key },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text))
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect(code, said).toBe(0)
})
