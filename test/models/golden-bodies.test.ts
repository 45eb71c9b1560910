/**
 * The exact HTTP body that each provider gets for one conversation with tools, images, documents, reasoning and a response
 * format. The bodies are in golden-bodies/. After an intended change: `vitest run test/models/golden-bodies.test.ts -u`.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Message, userText } from '../../src/domain/message.ts'
import type { ModelRequest } from '../../src/models/port.ts'
import { findProvider, PROVIDER_NAMES } from '../../src/models/providers/registry.ts'
import { call, DICE_TOOL, openDispatcher } from './calling.ts'

const dispatcher = openDispatcher()
const bodies: string[] = []
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  bodies.push(Buffer.concat(chunks).toString())
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

test.each(PROVIDER_NAMES.filter((name) => findProvider(name)?.open))('%s', async (provider) => {
  const { port } = server.address() as AddressInfo
  const config = { provider, model: MODELS[provider]!, baseUrl: `http://127.0.0.1:${port}`, apiKeyEnv: 'KEY' }
  const opened = findProvider(provider)!.open!(config, { name: 'm', env: { KEY: 'key' }, client: { dispatcher } })
  if (typeof opened === 'string') throw new Error(opened)
  bodies.length = 0
  await call(await opened(), REQUEST)
  expect(bodies).toHaveLength(1)
  const body = `${JSON.stringify(JSON.parse(bodies[0]!), null, 2)}\n`
  await expect(body).toMatchFileSnapshot(`golden-bodies/${provider}.json`)
})
