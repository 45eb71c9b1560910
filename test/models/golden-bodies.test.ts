/**
 * The exact HTTP body that each provider gets for one conversation with tools, images, documents, reasoning and a response
 * format, and what the parameters of a request add to a body or are ignored. The bodies are in golden-bodies/. After an intended change: `vitest run test/models/golden-bodies.test.ts -u`.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Message, userText } from '../../src/domain/message.ts'
import { MODEL_PARAMETERS, type ModelParameters } from '../../src/domain/model-parameters.ts'
import type { ModelRequest } from '../../src/models/port.ts'
import type { ClientOptions } from '../../src/models/providers/provider.ts'
import { findProvider, PROVIDER_NAMES, type ProviderName } from '../../src/models/providers/registry.ts'
import { call, DICE_TOOL, openDispatcher } from './calling.ts'

const dispatcher = openDispatcher()
const bodies: string[] = []
let headers: IncomingHttpHeaders = {}
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  bodies.push(Buffer.concat(chunks).toString())
  headers = request.headers
  response.writeHead(400).end('{}')
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await dispatcher.destroy()
})

const MODELS: Readonly<Record<string, string>> = {
  'openai-compatible': 'deepseek-v4-pro',
  anthropic: 'claude-opus-5-5',
  google: 'gemini-3.8-flash',
  openai: 'gpt-6-sol',
  bedrock: 'us.anthropic.claude-opus-5-5',
  azure: 'gpt-6-sol',
  openrouter: 'anthropic/claude-opus-5.5',
  mistral: 'mistral-medium-3.5',
  xai: 'grok-4.7',
  deepseek: 'deepseek-v4-pro',
  groq: 'openai/gpt-oss-120b',
}

const PNG = { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' } as const
const PDF = { type: 'document', mimeType: 'application/pdf', base64: 'JVBERi0xLjcK', name: 'r.pdf' } as const
/** Metadata of every provider, so that each finds its own signature. */
const SIGNED = {
  anthropic: { signature: 'SIGNED' },
  bedrock: { signature: 'SIGNED' },
  google: { thoughtSignature: 'SIGNED' },
  openai: { itemId: 'rs_1', reasoningEncryptedContent: 'SIGNED' },
  azure: { itemId: 'rs_1', reasoningEncryptedContent: 'SIGNED' },
  openrouter: {
    model: 'anthropic/claude-opus-5.5',
    details: [{ type: 'reasoning.text', text: 'I roll both at once.', signature: 'SIGNED', index: 0 }],
  },
}

const CONVERSATION: readonly Message[] = [
  { role: 'user', content: [{ type: 'text', text: 'Roll two dice for these.' }, PNG, PDF] },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'I roll both at once.', provider: SIGNED },
      { type: 'text', text: 'Rolling.' },
      { type: 'tool_call', callId: 'call_1', name: 'roll_dice', argsText: '{"sides":6}', args: { sides: 6 } },
      { type: 'tool_call', callId: 'call_2', name: 'roll_dice', argsText: '{"sides":20}', args: { sides: 20 } },
    ],
  },
  { role: 'tool', callId: 'call_1', name: 'roll_dice', output: 'rolled 3' },
  { role: 'tool', callId: 'call_2', name: 'roll_dice', output: 'rolled 17', media: [PNG] },
  { role: 'assistant', content: [{ type: 'text', text: 'A 3 and a 17.' }] },
  userText('Now as JSON.'),
]

const REQUEST: ModelRequest = {
  system: 'Be exact.',
  messages: CONVERSATION,
  tools: [DICE_TOOL],
  maxOutputTokens: 4_096,
  responseFormat: {
    type: 'object',
    properties: { rolls: { type: 'array', items: { type: 'integer' } } },
    required: ['rolls'],
    additionalProperties: false,
  },
}

const CALLED = PROVIDER_NAMES.filter((name) => findProvider(name)?.open)

async function bodyOf(
  provider: ProviderName,
  model: string,
  request: ModelRequest,
  extras: Partial<ClientOptions> = {},
) {
  const { port } = server.address() as AddressInfo
  const config = { provider, model, baseUrl: `http://127.0.0.1:${port}`, apiKeyEnv: 'KEY' }
  const opened = findProvider(provider)!.open!(config, {
    name: 'm',
    env: { KEY: 'key' },
    client: { dispatcher, ...extras },
  })
  if (typeof opened === 'string') throw new Error(opened)
  bodies.length = 0
  const { deltas } = await call(await opened(), request)
  expect(bodies).toHaveLength(1)
  return { body: JSON.parse(bodies[0]!) as Record<string, unknown>, deltas }
}

test.each(CALLED)('%s', async (provider) => {
  const { body } = await bodyOf(provider, MODELS[provider]!, REQUEST)
  await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot(`golden-bodies/${provider}.json`)
})

test.each(CALLED)('%s gets the headers, the body fields and the limit of the operator', async (provider) => {
  const request = { messages: [userText('Hi')], tools: [], maxOutputTokens: 50_000 }
  const extraBody = { safety: { level: 1 }, max_tries: 2 }
  const extras = { headers: { 'X-Team': 'research' }, extraBody, maxOutputTokens: 100 }
  const { body } = await bodyOf(provider, MODELS[provider]!, request, extras)
  expect(headers['x-team']).toBe('research')
  expect(headers['content-type']).toBe('application/json')
  expect(body).toMatchObject(extraBody)
  expect(JSON.stringify(body)).toMatch(/max\w*tokens":100\b/i)
})

/** Models that accept other parameters than those of MODELS. */
const FURTHER_MODELS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['claude-haiku-5-5', 'claude-opus-4-6', 'claude-haiku-4-5', 'claude-3-haiku-20240307'],
  bedrock: [
    'us.anthropic.claude-opus-5-v1:0',
    'us.anthropic.claude-haiku-4-5-20251001-v1:0',
    'openai.gpt-oss-120b-1:0',
    'us.amazon.nova-2-lite-v1:0',
    'mistral.mistral-large-2407-v1:0',
  ],
  google: ['gemini-3.1-pro-preview', 'gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-2.0-flash'],
  openai: ['gpt-6-astra', 'gpt-5.6', 'gpt-5.2', 'gpt-5.1', 'gpt-5', 'gpt-5-pro', 'gpt-4.1', 'o3'],
  azure: ['my-deployment'],
  mistral: ['mistral-large-4-0', 'magistral-medium-latest', 'codestral-latest'],
  xai: ['grok-4.3', 'grok-4', 'grok-3-mini'],
  groq: ['qwen/qwen3-32b', 'llama-3.3-70b-versatile'],
}

const EFFORTS = MODEL_PARAMETERS.reasoning.fields.effort.oneOf

const PARAMETERS: Readonly<Record<string, ModelParameters>> = {
  ...Object.fromEntries(EFFORTS.map((effort) => [`effort ${effort}`, { reasoning: { effort } }])),
  'temperature 0.2': { temperature: 0.2 },
  'temperature 1.8': { temperature: 1.8 },
  'effort none, temperature 0.2': { reasoning: { effort: 'none' }, temperature: 0.2 },
  'effort high, temperature 0.2': { reasoning: { effort: 'high' }, temperature: 0.2 },
  'verbosity low': { verbosity: 'low' },
}

test.each(CALLED)('%s, with the parameters of a request', async (provider) => {
  const lines: Record<string, Record<string, unknown>> = {}
  for (const model of [MODELS[provider]!, ...(FURTHER_MODELS[provider] ?? [])]) {
    const request = { messages: [userText('Hi')], tools: [], maxOutputTokens: 50_000 }
    const { body: plain } = await bodyOf(provider, model, request)
    lines[model] = {}
    for (const [name, parameters] of Object.entries(PARAMETERS)) {
      const { body, deltas } = await bodyOf(provider, model, { ...request, parameters })
      const sent = Object.entries(body).filter(([key, value]) => !isDeepStrictEqual(plain[key], value))
      const gone = Object.keys(plain).filter((key) => !(key in body))
      const ignored = deltas.flatMap((delta) => (delta.type === 'ignored' ? [delta.message] : []))
      lines[model][name] = {
        ...Object.fromEntries(sent),
        ...(gone.length && { gone }),
        ...(ignored.length && { ignored }),
      }
    }
  }
  await expect(`${JSON.stringify(lines, null, 2)}\n`).toMatchFileSnapshot(`golden-bodies/parameters/${provider}.json`)
})
