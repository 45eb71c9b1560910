import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { ModelConfig } from '../../src/config.ts'
import { demoEntry } from '../../src/demo/catalogue-entry.ts'
import { type CatalogueOptions, openCatalogue } from '../../src/models/catalogue.ts'
import type { Catalogue } from '../../src/models/port.ts'
import type { LocalServer } from '../../src/models/providers/provider.ts'
import { ALL_PROVIDERS } from '../../src/models/providers/registry.ts'
import { openFakeProvider } from '../fake-provider.ts'
import { ask, call, closedPort, failureOf } from './calling.ts'

const toClose: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close()
})

async function open(options: Partial<CatalogueOptions>): Promise<Catalogue> {
  const catalogue = await openCatalogue({
    models: {},
    defaultModel: 'svc-3.5-flash',
    demo: true,
    env: {},
    demoEntry,
    log: { warn: () => {} },
    localServers: [],
    ...options,
  })
  toClose.push(catalogue)
  return catalogue
}

async function speak(catalogue: Catalogue, name: string) {
  return call(await catalogue.get(name)!.open(), ask('Hi'))
}

/** A server that gives every request the same answer. */
async function serve(status: number, body: string, headers: Record<string, string> = {}): Promise<string> {
  const server: Server = createServer((_, response) => response.writeHead(status, headers).end(body))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  toClose.push({ close: async () => server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const compatible = (rest: Partial<ModelConfig> = {}): ModelConfig => ({
  provider: 'openai-compatible',
  model: 'fake',
  baseUrl: 'http://127.0.0.1:1/v1',
  ...rest,
})

describe('with models in errand.yaml', () => {
  test('has their names and demo, and no others', async () => {
    const price = { input: 0.3, output: 2.5 }
    const catalogue = await open({
      models: { big: compatible({ price, vision: true }), 'svc-3.5-flash': compatible() },
      env: { OPENAI_API_KEY: 'x' },
    })
    expect(catalogue.names()).toEqual(['big', 'svc-3.5-flash', 'demo'])
    expect(catalogue.get('svc-3.1-pro')).toBeUndefined()
    expect(catalogue.defaultName).toBe('svc-3.5-flash')
    expect(catalogue.describe()).toEqual([
      {
        name: 'big',
        provider: 'openai-compatible',
        model: 'fake',
        source: 'errand.yaml',
        price,
        vision: true,
        documents: false,
        demo: false,
      },
      {
        name: 'svc-3.5-flash',
        provider: 'openai-compatible',
        model: 'fake',
        source: 'errand.yaml',
        vision: false,
        documents: false,
        demo: false,
      },
      {
        name: 'demo',
        provider: 'demo',
        model: 'demo',
        source: 'built-in demo model',
        vision: false,
        documents: false,
        demo: true,
      },
    ])
  })

  test('takes the first as default if the configured default is not among them', async () => {
    const catalogue = await open({ models: { big: compatible(), small: compatible() } })
    expect(catalogue.defaultName).toBe('big')
  })

  test('has no demo if the demo model is off, unless an entry is configured with it', async () => {
    expect((await open({ models: { big: compatible() }, demo: false })).names()).toEqual(['big'])
    const named = await open({ models: { mine: { provider: 'demo', model: 'demo' } }, demo: false })
    expect((await speak(named, 'mine')).reasoning).toContain('demo model')
    expect(named.get('mine')).toMatchObject({ demo: true, source: 'errand.yaml' })
  })

  test('calls a model at its address with the key from its variable', async () => {
    const provider = await openFakeProvider()
    toClose.push(provider)
    provider.script({ text: 'Hello.' })
    const models = { big: compatible({ baseUrl: provider.url, apiKeyEnv: 'MY_KEY' }) }
    const catalogue = await open({ models, env: { MY_KEY: ' sk-1\n' } })
    expect((await speak(catalogue, 'big')).text).toBe('Hello.')
    expect(provider.requests[0]!.headers.authorization).toBe('Bearer sk-1')
    expect(JSON.stringify(catalogue.describe())).not.toContain('sk-1')
  })

  test('uses the configured tries and idle timeout, and logs each retry', async () => {
    const provider = await openFakeProvider()
    toClose.push(provider)
    provider.when(/Hi/, [{ fault: 'stall' }])
    const warnings: object[] = []
    const models = { big: compatible({ baseUrl: provider.url, maxTries: 2, idleTimeoutS: 0.15 }) }
    const catalogue = await open({ models, log: { warn: (details) => warnings.push(details) } })
    expect(failureOf((await speak(catalogue, 'big')).outcome).kind).toBe('stalled')
    expect(provider.requests).toHaveLength(2)
    expect(warnings).toMatchObject([{ model: 'big', tries: 1 }])
  })

  test.each<[string, ModelConfig, string]>([
    ['no key in the variable', compatible({ apiKeyEnv: 'MY_KEY' }), 'MY_KEY'],
    ['no base URL', compatible({ baseUrl: undefined }), 'baseUrl'],
    ['a base URL that is none', compatible({ baseUrl: 'localhost:11434/v1' }), 'baseUrl'],
    ['no key for Anthropic', { provider: 'anthropic', model: 'claude-opus-5-5' }, 'ANTHROPIC_API_KEY'],
    ['no key for DeepSeek', { provider: 'deepseek', model: 'deepseek-v4-pro' }, 'DEEPSEEK_API_KEY'],
    [
      'no key for Azure',
      { provider: 'azure', model: 'm', baseUrl: 'https://r.openai.azure.com/openai' },
      'AZURE_API_KEY',
    ],
    ['no credentials for Bedrock', { provider: 'bedrock', model: 'm' }, 'AWS_ACCESS_KEY_ID'],
  ])('has a model with %s, as unavailable', async (_, config, words) => {
    const catalogue = await open({ models: { big: config } })
    expect(catalogue.get('big')!.unavailable).toContain(words)
    const failure = failureOf((await speak(catalogue, 'big')).outcome)
    expect(failure).toMatchObject({ kind: 'refused', message: catalogue.get('big')!.unavailable })
  })

  test.each<[ModelConfig, Record<string, string>]>([
    [{ provider: 'anthropic', model: 'm' }, { ANTHROPIC_API_KEY: 'k' }],
    [{ provider: 'google', model: 'm' }, { GOOGLE_GENERATIVE_AI_API_KEY: 'k' }],
    [{ provider: 'openai', model: 'm', apiKeyEnv: 'OTHER' }, { OTHER: 'k' }],
    [{ provider: 'bedrock', model: 'm' }, { AWS_BEARER_TOKEN_BEDROCK: 'k' }],
    [
      { provider: 'bedrock', model: 'm' },
      { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' },
    ],
    [{ provider: 'azure', model: 'm', baseUrl: 'https://r.openai.azure.com/openai' }, { AZURE_API_KEY: 'k' }],
    [
      { provider: 'azure', model: 'm' },
      { AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'r' },
    ],
    [{ provider: 'openrouter', model: 'm' }, { OPENROUTER_API_KEY: 'k' }],
    [{ provider: 'mistral', model: 'm' }, { MISTRAL_API_KEY: 'k' }],
    [{ provider: 'xai', model: 'm' }, { XAI_API_KEY: 'k' }],
    [{ provider: 'deepseek', model: 'm' }, { DEEPSEEK_API_KEY: 'k' }],
    [{ provider: 'groq', model: 'm', apiKeyEnv: 'OTHER' }, { OTHER: 'k' }],
  ])('%j is available with %j', async (config, env) => {
    expect((await open({ models: { big: config }, env })).get('big')!.unavailable).toBeUndefined()
  })
})

test.each([undefined, 'host.example/#'])('Azure with the resource %s has no address', async (name) => {
  const env = { AZURE_API_KEY: 'k', ...(name && { AZURE_RESOURCE_NAME: name }) }
  const catalogue = await open({ models: { big: { provider: 'azure', model: 'm' } }, env })
  expect(catalogue.get('big')!.unavailable).toContain('AZURE_RESOURCE_NAME')
})

describe('with a known key in the environment', () => {
  test.each([
    ['ANTHROPIC_API_KEY', 'anthropic', ['claude-haiku-5-5', 'claude-opus-5-5']],
    ['GEMINI_API_KEY', 'google', ['gemini-3.8-flash', 'gemini-3.1-pro-preview']],
    ['GOOGLE_GENERATIVE_AI_API_KEY', 'google', ['gemini-3.8-flash', 'gemini-3.1-pro-preview']],
    ['OPENAI_API_KEY', 'openai', ['gpt-6-luna', 'gpt-6-sol']],
    [
      'AWS_BEARER_TOKEN_BEDROCK',
      'bedrock',
      ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 'us.anthropic.claude-opus-5-5'],
    ],
  ])('%s selects models of %s for both names', async (key, provider, [fast, strong]) => {
    const catalogue = await open({ env: { [key]: 'k' } })
    const common = { provider, source: key, demo: false, vision: true, documents: provider !== 'bedrock' }
    expect(catalogue.describe()).toMatchObject([
      { name: 'svc-3.5-flash', model: fast, ...common },
      { name: 'svc-3.1-pro', model: strong, ...common },
      { name: 'demo', demo: true },
    ])
    expect(catalogue.describe().some(({ unavailable }) => unavailable)).toBe(false)
    expect(catalogue.defaultName).toBe('svc-3.5-flash')
  })

  test.each(ALL_PROVIDERS.filter(({ specModels }) => specModels))(
    'the record of $name decides whether its models accept images and PDFs',
    async ({ keyEnvs, specModels, acceptsMedia = false }) => {
      const catalogue = await open({ env: { [keyEnvs[0]!]: 'k' } })
      for (const [name, { vision = acceptsMedia }] of Object.entries(specModels!({}))) {
        expect(catalogue.get(name)).toMatchObject({ vision, documents: vision && acceptsMedia })
      }
    },
  )

  test.each([
    'OPENROUTER_API_KEY',
    'MISTRAL_API_KEY',
    'XAI_API_KEY',
    'DEEPSEEK_API_KEY',
    'GROQ_API_KEY',
    'AZURE_API_KEY',
  ])('%s selects no model: its models must be configured', async (key) => {
    expect((await open({ env: { [key]: 'k' } })).get('svc-3.5-flash')).toMatchObject({ demo: true })
    const without = await open({ env: { [key]: 'k' }, demo: false })
    expect(without.get('svc-3.5-flash')!.unavailable).not.toContain(key)
  })

  test('ignores an empty key, and signing keys alone', async () => {
    const env = { ANTHROPIC_API_KEY: ' ', AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' }
    expect((await open({ env })).get('svc-3.5-flash')).toMatchObject({ demo: true })
  })

  test("the provider's own variable overrides its address", async () => {
    const baseUrl = await serve(401, '{"error":{"message":"Who are you?"}}', { 'content-type': 'application/json' })
    const catalogue = await open({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${baseUrl}/v1` } })
    const failure = failureOf((await speak(catalogue, 'svc-3.5-flash')).outcome)
    expect(failure.message).toContain('Who are you?')
    expect(failure.message).toContain('OPENAI_API_KEY')
  })
})

describe('with a model server on this machine', () => {
  const list = (owned_by: string, ...ids: string[]) =>
    JSON.stringify({ object: 'list', data: ids.map((id) => ({ id, object: 'model', owned_by })) })

  test('uses its first text model for both names', async () => {
    const provider = await openFakeProvider({
      models: [{ id: 'nomic-embed-text' }, { id: 'qwen3:8b' }, { id: 'other' }],
    })
    toClose.push(provider)
    provider.script({ text: 'Local hello.' })
    const origin = `http://127.0.0.1:${provider.port}`
    const catalogue = await open({ localServers: [{ name: 'Ollama', origin }] })
    expect(catalogue.describe()).toMatchObject([
      { name: 'svc-3.5-flash', model: 'qwen3:8b', source: `Ollama at 127.0.0.1:${provider.port}`, demo: false },
      { name: 'svc-3.1-pro', model: 'qwen3:8b', demo: false },
      { name: 'demo' },
    ])
    expect((await speak(catalogue, 'svc-3.1-pro')).text).toBe('Local hello.')
    expect(provider.requests[0]!.headers.authorization).toBeUndefined()
  })

  test('takes the first server found, in the order of the table', async () => {
    const localServers: LocalServer[] = [
      { name: 'gone', origin: `http://127.0.0.1:${await closedPort()}` },
      { name: 'first', origin: await serve(200, list('x', 'one')) },
      { name: 'second', origin: await serve(200, list('x', 'two')) },
    ]
    expect((await open({ localServers })).get('svc-3.5-flash')!.source).toMatch(/^first at /)
  })

  test.each([
    ['Errand itself', 401, '{"error":{"code":"unauthenticated","message":"No key.","status":401}}'],
    ['a page', 200, '<html></html>'],
    ['another kind of server', 200, list('vllm', 'one')],
    ['a list without models', 200, list('llamacpp')],
    ['a list of embedding models only', 200, list('llamacpp', 'nomic-embed-text')],
    ['JSON of another shape', 200, '{"data":[{"id":"one","owned_by":"llamacpp"}]}'],
    ['an endless list', 200, `{"object":"list","data":[${'0,'.repeat(1024 * 1024)}0]}`],
  ])('does not take %s on its port for a model server', async (_, status, body) => {
    const origin = await serve(status, body)
    const catalogue = await open({ localServers: [{ name: 'llama.cpp', origin, ownedBy: 'llamacpp' }] })
    expect(catalogue.get('svc-3.5-flash')).toMatchObject({ demo: true })
  })

  test('does not wait for a server that does not answer in time', async () => {
    const provider = await openFakeProvider()
    toClose.push(provider)
    const silent = createServer(() => {})
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    toClose.push({ close: async () => silent.closeAllConnections() ?? silent.close() })
    const localServers = [
      { name: 'silent', origin: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` },
      { name: 'here', origin: `http://127.0.0.1:${provider.port}` },
    ]
    const catalogue = await open({ localServers, probeTimeoutMs: 100 })
    expect(catalogue.get('svc-3.5-flash')!.source).toMatch(/^here at /)
  })
})

describe('without any model', () => {
  test('uses the demo model, which says that it is one', async () => {
    const catalogue = await open({})
    expect(catalogue.names()).toEqual(['svc-3.5-flash', 'svc-3.1-pro', 'demo'])
    expect(catalogue.describe().every((entry) => entry.demo)).toBe(true)
    expect((await speak(catalogue, catalogue.defaultName)).reasoning).toContain('demo model')
  })

  test('has the names with what to do if the demo model is off', async () => {
    const catalogue = await open({ demo: false })
    expect(catalogue.names()).toEqual(['svc-3.5-flash', 'svc-3.1-pro'])
    for (const { unavailable, demo } of catalogue.describe()) {
      expect(demo).toBe(false)
      expect(unavailable).toContain('ANTHROPIC_API_KEY')
      expect(unavailable).toContain('ERRAND_DEMO')
    }
    expect(failureOf((await speak(catalogue, 'svc-3.5-flash')).outcome).kind).toBe('refused')
  })

  test('opens the same model each time', async () => {
    const catalogue = await open({ models: { big: compatible() } })
    expect(catalogue.get('big')!.open()).toBe(catalogue.get('big')!.open())
  })
})
