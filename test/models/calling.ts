/** Requests, models and calls for the tests of models. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Agent } from 'undici'
import { userText } from '../../src/domain/message.ts'
import { createOpenAiCompatible, type OpenAiCompatibleOptions } from '../../src/models/openai-compatible.ts'
import type { Model, ModelDelta, ModelFailure, ModelOutcome, ModelRequest } from '../../src/models/port.ts'
import { anthropic } from '../../src/models/providers/anthropic.ts'
import { azure } from '../../src/models/providers/azure.ts'
import { bedrock } from '../../src/models/providers/bedrock.ts'
import { google } from '../../src/models/providers/google.ts'
import { openAi } from '../../src/models/providers/openai.ts'
import { refusesLostReasoning } from '../../src/models/providers/openai-compatible.ts'
import type { Timing } from '../../src/models/retry.ts'

export const KEY = 'sk-secret-0123456789'

export const DICE_TOOL = {
  name: 'roll_dice',
  description: 'Rolls dice.',
  parameters: { type: 'object', properties: { sides: { type: 'integer' } }, required: ['sides'] },
}

export function ask(text: string, rest: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [userText(text)], tools: [], maxOutputTokens: 1000, ...rest }
}

/** Timing that records waits instead of sleeping. */
export function recordedTiming(now = 0): Timing & { readonly waits: number[] } {
  const waits: number[] = []
  return {
    waits,
    now: () => now,
    random: () => 0.5,
    sleep: async (ms) => void waits.push(ms),
  }
}

export interface Spoken {
  readonly outcome: ModelOutcome
  readonly deltas: ModelDelta[]
  /** The text deltas joined. */
  readonly text: string
  readonly reasoning: string
}

export async function call(
  model: Model,
  request: ModelRequest,
  signal = new AbortController().signal,
): Promise<Spoken> {
  const deltas: ModelDelta[] = []
  const outcome = await model.call(request, (delta) => deltas.push(delta), signal)
  const joined = (type: 'text' | 'reasoning') => deltas.map((delta) => (delta.type === type ? delta.text : '')).join('')
  return { outcome, deltas, text: joined('text'), reasoning: joined('reasoning') }
}

export function failureOf(outcome: ModelOutcome): ModelFailure {
  if (outcome.ok) throw new Error(`The call should have failed: ${JSON.stringify(outcome)}`)
  return outcome.failure
}

export function messageOf(outcome: ModelOutcome) {
  if (!outcome.ok) throw new Error(`The call should have succeeded: ${outcome.failure.message}`)
  return outcome.message
}

/** Shared by all tests of a file, which closes it in `afterAll`. */
export function openDispatcher(): Agent {
  return new Agent({ headersTimeout: 0, bodyTimeout: 0 })
}

/** Records of the providers that are called with an AI SDK package. */
export const AI_SDK_PROVIDERS = { anthropic, google, openai: openAi, bedrock, azure }
export type AiSdkName = keyof typeof AI_SDK_PROVIDERS

export function modelAt(
  baseUrl: string,
  dispatcher: Agent,
  rest: Partial<OpenAiCompatibleOptions> = {},
): { model: Model; timing: ReturnType<typeof recordedTiming> } {
  const timing = recordedTiming()
  const model = createOpenAiCompatible({
    baseUrl,
    dispatcher,
    model: 'fake',
    apiKey: KEY,
    apiKeyEnv: 'FAKE_KEY',
    timing,
    dialect: {},
    name: 'm',
    support: { levels: undefined },
    sendReasoning: refusesLostReasoning(baseUrl, rest.model ?? 'fake'),
    ...rest,
  })
  return { model, timing }
}

/** A loopback port without a listener. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
