/** A server with a scripted provider, for the figures of the agent. Runs are polled, so they survive kills of the server. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ModelProvider, RecordedRequest } from '../../test/support/model-provider/serve.ts'
import { type Server, startServer } from '../../test/support/server.ts'
import { ROOMY } from '../sides.ts'

const PATH = '/v1beta/interactions'
const POLL_MS = 50
const LONGEST_RUN_S = 28_800

// biome-ignore lint/suspicious/noExplicitAny: fields of any answer
export type Interaction = any

export interface AgentServer {
  /** Starts a run and returns its id. */
  start(request: object): Promise<string>
  /** Resolves when the run has ended. */
  ended(id: string): Promise<Interaction>
  run(request: object): Promise<Interaction>
  get(id: string): Promise<Interaction>
  /** Kills the server with SIGKILL and starts it again on its data. */
  kill(): Promise<void>
  close(): Promise<void>
}

export interface AgentServerOptions {
  readonly config?: Readonly<Record<string, unknown>>
  /** Fields of the model's entry. */
  readonly model?: Readonly<Record<string, unknown>>
}

/** The models are `cached` and, without prompt caching, `uncached`. */
export async function openAgentServer(
  provider: Pick<ModelProvider<never>, 'model' | 'env' | 'url'>,
  { config, model: fields }: AgentServerOptions = {},
): Promise<AgentServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'errand-bench-agent-'))
  const model = { ...provider.model, baseUrl: provider.url, ...fields }
  const models = { cached: model, uncached: { ...model, cache: 'off' } }
  const settings = { models, limits: ROOMY, workerSlots: 1_000, sandbox: { pool: 0 }, ...config }
  const open = (key?: string) => startServer({ dataDir, key, env: provider.env, config: settings })
  let server: Server = await open()
  let restarted: Promise<void> = Promise.resolve()

  async function get(id: string): Promise<Interaction> {
    await restarted
    const answer = await server.get(`${PATH}/${id}`).catch(() => undefined)
    return answer?.body ?? { status: 'running' }
  }
  async function start(request: object): Promise<string> {
    const policy = { maxTurnDuration: LONGEST_RUN_S }
    const body = { model: 'cached', tools: ['code_execution'], policy, ...request, background: true }
    const { status, body: accepted, text } = await server.post(PATH, body)
    if (status !== 202 && status !== 200) throw new Error(text)
    return accepted.interactionId
  }
  async function ended(id: string): Promise<Interaction> {
    for (;;) {
      const found = await get(id)
      if (found.status !== 'running') return found
      await sleep(POLL_MS)
    }
  }
  return {
    start,
    ended,
    run: async (request) => ended(await start(request)),
    get,
    kill() {
      restarted = restarted.then(async () => {
        await server.stop('SIGKILL')
        server = await open(server.key)
      })
      return restarted
    },
    async close() {
      await restarted
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** The part of a request from the newest instruction with the marker on. */
function since(marker: string, { body }: RecordedRequest<unknown>): string {
  const text = JSON.stringify(body)
  return text.slice(text.lastIndexOf(marker))
}

/** Number of tool results after the instruction with the marker. */
export function resultsSince(marker: string, request: RecordedRequest<unknown>): number {
  return since(marker, request).match(/"type":"tool_result"|"role":"tool"/g)?.length ?? 0
}

/** Shorter parts of an answer may be in a request by chance. */
const LEAST_SHOWN = 40

/** The rest of an answer for a request that has the shown part of it after the marker. */
export function restOf(answer: string, marker: string, request: RecordedRequest<unknown>): string {
  const text = since(marker, request)
  let length = answer.length
  while (length >= LEAST_SHOWN && !text.includes(answer.slice(0, length))) length--
  return length < LEAST_SHOWN ? answer : answer.slice(length) || '[end of answer]'
}
