/** Sizes of requests: small context windows, long tool results, many tools; and calls of one turn at the same time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type FakeProvider, openFakeProvider, type RecordedRequest } from '../../test/fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../../test/mcp/fake-mcp.ts'
import type { Plan, Verdict } from '../measurement.ts'
import { type AgentServer, openAgentServer, resultsSince } from './agent-server.ts'

const FACT = 'The code of the vault is otter-42.'
/** Words of the request for a summary. */
const SUMMARIZE = 'replaced by the summary'
const WINDOW = 32_000

/** Row A4. */
export async function smallWindow({ short, log }: Plan): Promise<Verdict[]> {
  const calls = short ? 12 : 200
  const provider = await openFakeProvider({ counts: true, pairsCalls: true, window: WINDOW })
  const server = await openAgentServer(provider, { model: { contextWindow: WINDOW } })
  let done = 0
  try {
    provider.when(/./, ({ body }) => {
      if (String(body.messages.at(-1)!.content).includes(SUMMARIZE))
        return { text: JSON.stringify(body).includes(FACT) ? FACT : 'No fact is known.' }
      if (done >= calls) return { text: 'Done.' }
      const code = done++ === 2 ? `print('${FACT}')` : "print('0123456789abcdef' * 2000)"
      return { toolCalls: [{ name: 'code_execution', args: { code: `${code}  # ${done}` } }] }
    })
    const { status, output } = await server.run({ instruction: 'Make many calls.' })
    const accepted = provider.requests.filter(({ refused }) => refused === undefined)
    const last = JSON.stringify(accepted.at(-1)?.body ?? {})
    log(`${accepted.length} calls of the model, ${provider.requests.length - accepted.length} refused`)
    const complete = status === 'completed' && output.endsWith('Done.') && done === calls
    const what = `${calls} tool calls with 8k-token results in a 32k window`
    return [
      { row: 'A4', what: `${what}: completes`, measured: Number(complete), bound: 'at least', target: 1 },
      {
        row: 'A4',
        what: `${what}: a fact of turn 3 is in the last request`,
        measured: Number(last.includes(FACT)),
        bound: 'at least',
        target: 1,
      },
    ]
  } finally {
    await server.close()
    await provider.close()
  }
}

const MANY_TOOLS = 400

const promptTokens = ({ billed }: RecordedRequest): number => billed!.uncached + billed!.cacheRead

/** Row A5. */
export async function requestSizes(_: Plan): Promise<Verdict[]> {
  return withMcp(async ({ provider, server, mcp }) => {
    const code = "print('some words of output\\n' * 210_000)"
    provider.when('[long]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Done.' })
    await server.run({ instruction: '[long]' })
    const [before, after] = provider.requests.map(promptTokens)
    mcp.tools = Array.from({ length: MANY_TOOLS }, (_, i) => ({
      name: `record_${i}_update`,
      description: `Updates a record of kind ${i}. Fields that are not given keep their values.`,
      inputSchema: { type: 'object', properties: { id: { type: 'string' }, value: { type: 'string' } } },
    }))
    provider.when('[many]', { text: 'Done.' })
    await server.run({ instruction: '[many]', tools: [], mcp: [{ name: 'records', url: mcp.url }] })
    const many = promptTokens(provider.requests.at(-1)!)
    return [
      {
        row: 'A5',
        what: '5 MB of output: tokens that the next request adds',
        measured: after! - before!,
        bound: 'at most',
        target: 6_000,
      },
      {
        row: 'A5',
        what: `${MANY_TOOLS} MCP tools: tokens of the first request`,
        measured: many,
        bound: 'at most',
        target: 8_000,
      },
    ]
  })
}

/** Row A6. */
export async function parallelCalls({ short }: Plan): Promise<Verdict[]> {
  return withMcp(async ({ provider, server, mcp }) => {
    mcp.tools = [
      { name: 'slow', description: 'Waits.', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
    ]
    mcp.onCall = async () => {
      await sleep(short ? 200 : 2_000)
      return 'waited'
    }
    const call = { name: 'm__slow', args: {} }
    const seconds = async (marker: string, toolCalls: readonly (typeof call)[]) => {
      provider.when(marker, { toolCalls }, { text: 'Done.' })
      const { usage } = await server.run({ instruction: marker, tools: [], mcp: [{ name: 'm', url: mcp.url }] })
      if (resultsSince(marker, provider.requests.at(-1)!) !== toolCalls.length) throw new Error('a call has no result')
      return usage.duration_ms / 1_000
    }
    const one = await seconds('[one]', [call])
    const two = await seconds('[two]', [call, call])
    const what = 'two independent calls of 2 s in one turn, against one'
    return [{ row: 'A6', what, measured: two / one, bound: 'at most', target: 1.2 }]
  })
}

interface Parts {
  readonly provider: FakeProvider
  readonly server: AgentServer
  readonly mcp: FakeMcp
}

async function withMcp(measure: (parts: Parts) => Promise<Verdict[]>): Promise<Verdict[]> {
  const [provider, mcp] = await Promise.all([openFakeProvider({ counts: true }), openFakeMcp()])
  const server = await openAgentServer(provider, { config: { egress: { allowPrivate: [mcp.address] } } })
  try {
    return await measure({ provider, server, mcp })
  } finally {
    await server.close()
    await mcp.close()
    await provider.close()
  }
}
