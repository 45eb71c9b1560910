/**
 * Checks that a server that is killed or stopped in the middle of its work resumes on the same data directory: every
 * acknowledged interaction ends exactly once, and no finished step runs again.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith } from '../support/processes.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { checkEnded, createGate, ended, outputOf, ROOMY, traceOf, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOOLS = ['code_execution']

let provider: FakeProvider
let dataDir: string
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  dataDir = await mkdtemp(join(tmpdir(), 'errand-crash-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  // The sandbox hosts end with their servers; no process of either is left.
  await until(async () => (await processesWith(dataDir)).length === 0)
  await rm(dataDir, { recursive: true, force: true })
})
beforeEach(() => {
  provider.reset()
  provider.when(/./, () => ({ text: 'Done.' }))
})

function start(key?: string, env: Record<string, string> = {}): Promise<Server> {
  return startServer({
    provider,
    dataDir,
    config: { limits: ROOMY },
    env: { ERRAND_LEASE_S: '1', ...env },
    ...(key && { key }),
  })
}

/** Kills the server with SIGKILL and starts a new one on the same data directory. */
async function crash(): Promise<void> {
  await server.stop('SIGKILL')
  server = await start(server.key)
}

async function begin(instruction: string, fields: object = {}): Promise<string> {
  const { status, body } = await server.post(PATH, { instruction, background: true, ...fields })
  expect(status).toBe(200)
  return body.interactionId
}

function asked(marker: string) {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).map(({ body }) => body)
}

async function finish(id: string, seen?: readonly WireEvent[]) {
  await ended(server, id)
  return checkEnded(server, id, seen)
}

describe('SIGKILL', () => {
  it('before the first fragment of the model: the run is resumed and completes', async () => {
    provider.when('[held]', [{ fault: 'stall' }, { text: ['All ', 'done.'] }])
    const id = await begin('[held]')
    await until(() => asked('[held]').length === 1)
    await crash()
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'All done.', stopReason: 'end_turn' })
    expect(asked('[held]')).toHaveLength(2)
  })

  it('between two turns: the result of a finished tool call is kept, and the call does not run again', async () => {
    // The first call prints another text each time it runs, and its file grows.
    const first = "import time; open('count', 'a').write('x'); print('ran', time.time_ns())"
    const second = "print('count', len(open('count').read()))"
    provider.when(
      '[two turns]',
      { reasoning: 'Hm.', text: 'I look.', toolCalls: [{ name: 'code_execution', args: { code: first } }] },
      [{ fault: 'stall' }, { toolCalls: [{ name: 'code_execution', args: { code: second } }] }],
      { text: 'Done.' },
    )
    const id = await begin('[two turns]', { tools: TOOLS })
    await until(() => asked('[two turns]').length === 2)
    await crash()
    const { interaction, events } = await finish(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    const trace = traceOf(events)
    expect(trace.map(({ type }) => type)).toEqual([
      ...['reasoning', 'reasoning', 'tool_call', 'tool_result'],
      ...['tool_call', 'tool_result'],
    ])
    // If the sandbox survived, its file has one byte; if not, the file does not exist. It never has two.
    expect(trace.at(-1)!.output).toMatch(/^count 1$|FileNotFoundError/)
    const [, before, after, last] = asked('[two turns]')
    const result = before!.messages.at(-1)!
    expect(result).toMatchObject({ role: 'tool', content: expect.stringMatching(/^ran \d+$/) })
    expect(after!.messages).toEqual(before!.messages)
    expect(last!.messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
    expect(interaction.usage).toMatchObject({ tool_calls: 2 })
  })

  it('during a tool call: the call is not started again, and the run continues', async () => {
    const marker = `marker-${randomUUID()}`
    const code = `
import os, subprocess, time
open('count', 'a').write('x')
subprocess.run(['sleep', '4'], env=dict(os.environ, MARKER='${marker}'))
print('ran', time.time_ns())`
    const count = "print('count', len(open('count').read()))"
    provider.when(
      '[running call]',
      { toolCalls: [{ name: 'code_execution', args: { code } }] },
      { toolCalls: [{ name: 'code_execution', args: { code: count } }] },
      { text: 'Done.' },
    )
    const id = await begin('[running call]', { tools: TOOLS })
    const begun = new Set(
      await until(async () => {
        const pids = await processesWith(marker)
        return pids.length > 0 && pids
      }),
    )
    await crash()
    const watched = ended(server, id)
    let over = false
    void watched.finally(() => {
      over = true
    })
    while (!over) {
      for (const pid of await processesWith(marker)) expect(begun, 'a second start of the call').toContain(pid)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const { interaction, events } = await finish(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    const trace = traceOf(events)
    expect(trace.map(({ type }) => type)).toEqual(['tool_call', 'tool_result', 'tool_call', 'tool_result'])
    expect(trace[1]!.output).toMatch(/^ran \d+|unknown/)
    expect(trace[3]!.output).toMatch(/^count 1$|FileNotFoundError/)
    const [, second] = asked('[running call]')
    expect(second!.messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
  })

  it('after a fragment was sent: the answer continues from there', async () => {
    provider.when('[shown]', { text: ['One ', 'two.'], fault: 'stall-after:1' }, { text: 'two.' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[shown]' })
    const id = stream.headers.get('x-interaction-id')!
    const seen: WireEvent[] = []
    for await (const event of stream.events) {
      seen.push(event)
      if (event.event === 'partial_output') break
    }
    await crash()
    const back = await server.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': seen.at(-1)!.id! })
    const rest = await back.all()
    const all = [...seen, ...rest]
    await finish(id, all)
    expect(all.at(-1)!.data).toMatchObject({ status: 'completed', usage: { model_calls: 2 } })
    expect(outputOf(all)).toBe('One two.')
  })

  it('after answer text and the tool call that followed it: the answer continues after a blank line', async () => {
    const long = 'x'.repeat(300)
    provider.when(
      '[answer and call]',
      { text: long, toolCalls: [{ name: 'code_execution', args: { code: 'print(42)' } }] },
      [{ fault: 'stall' }, { text: 'It is 42.' }],
    )
    const id = await begin('[answer and call]', { tools: TOOLS })
    await until(() => asked('[answer and call]').length === 2)
    await crash()
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ status: 'completed', output: `${long}\n\nIt is 42.` })
  })

  it('loses no acknowledged interaction: fifteen queued and running ones each end once', async () => {
    const gate = createGate()
    provider.when(/\[many \d+\]/, () => ({ text: 'Done.', hold: gate.opened }))
    const ids = await Promise.all(Array.from({ length: 15 }, (_, i) => begin(`[many ${i}]`)))
    await crash()
    gate.open()
    for (const id of ids) expect((await finish(id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  })

  it('keeps the Idempotency-Key: a repeated request joins the resumed run', async () => {
    provider.when('[once]', [{ fault: 'stall' }, { text: 'Done.' }])
    const body = { instruction: '[once]', labels: { test: 'once' } }
    const headers = { 'idempotency-key': 'survives' }
    const lost = server.post(PATH, body, headers).catch(() => 'lost')
    await until(() => asked('[once]').length === 1)
    const [{ id }] = (await server.get(`${PATH}?label.test=once`)).body.interactions
    await crash()
    expect(await lost).toBe('lost')
    const again = await server.post(PATH, body, headers)
    expect(again.status).toBe(200)
    expect(again.body).toMatchObject({ interactionId: id, status: 'completed', output: 'Done.' })
    expect((await server.post(PATH, { instruction: 'other' }, headers)).status).toBe(422)
    await finish(id)
  })

  it('reports the usage of a run that fails because the server stopped too often', async () => {
    provider.when('[given up]', ({ body }) => {
      const turn = body.messages.filter(({ role }) => role === 'assistant').length
      if (turn > 0) return { fault: 'stall' }
      return { toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }], usage: { input: 100, output: 7 } }
    })
    const id = await begin('[given up]', { tools: ['code_execution'] })
    for (let stops = 1; stops <= 3; stops++) {
      await until(() => asked('[given up]').length === stops + 1)
      await crash()
    }
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ status: 'failed', error: { code: 'internal', retryable: true } })
    expect(interaction.usage).toMatchObject({ input_tokens: 100, output_tokens: 7, model_calls: 1, tool_calls: 1 })
  })

  it('does not extend the deadline of the run', async () => {
    provider.when('[deadline]', { fault: 'stall' })
    const id = await begin('[deadline]', { policy: { maxTurnDuration: 3 } })
    await until(() => asked('[deadline]').length === 1)
    await crash()
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
  })

  it('leaves a run that can be canceled, and whose sandbox is then destroyed', async () => {
    const marker = `marker-${randomUUID()}`
    const code = `
import os, subprocess
subprocess.run(['sleep', '1000'], env=dict(os.environ, MARKER='${marker}'))`
    provider.when('[cancel me]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { fault: 'stall' })
    const id = await begin('[cancel me]', { tools: TOOLS })
    await until(async () => (await processesWith(marker)).length > 0)
    await crash()
    expect((await server.post(`${PATH}/${id}:cancel`)).status).toBe(200)
    expect(await processesWith(marker)).toEqual([])
    const { interaction } = await finish(id)
    expect(interaction.status).toBe('cancelled')
  })
})

describe('SIGTERM', () => {
  /** Sends SIGTERM and waits until the server reports that it is not ready. */
  async function draining(): Promise<void> {
    server.process.kill('SIGTERM')
    await until(async () => (await server.get('/readyz')).status === 503)
  }

  it('lets running interactions complete, refuses new ones with 503, and exits with 0', async () => {
    const gate = createGate()
    provider.when('[drained]', () => ({ text: ['All ', 'done.'], hold: gate.opened, holdAfter: 1 }))
    const blocked = server.post(PATH, { instruction: '[drained] blocking' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[drained] streamed' })
    await until(() => asked('[drained]').length === 2)
    await draining()
    for (const [path, fields] of [
      [PATH, {}],
      [PATH, { background: true }],
      [`${PATH}:stream`, {}],
    ] as const) {
      const refused = await server.post(path, { instruction: '[refused]', ...fields })
      expect(refused.status).toBe(503)
      expect(errorOf(refused)).toMatchObject({ code: 'unavailable', retryable: true })
    }
    gate.open()
    const [answer, seen] = await Promise.all([blocked, stream.all()])
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ status: 'completed', output: 'All done.' })
    expect(seen.at(-1)).toMatchObject({ event: 'completed', data: { status: 'completed' } })
    // Waits without stop(): a second signal would end the server immediately.
    await until(() => server.process.exitCode !== null || server.process.signalCode !== null)
    expect(server.process.exitCode).toBe(0)
    expect(asked('[refused]')).toEqual([])

    server = await start(server.key)
    await finish(answer.body.interactionId)
    await finish(stream.headers.get('x-interaction-id')!, seen)
  })

  it('releases runs that do not end in time: the server exits with 0, and the next start completes them', async () => {
    await server.stop()
    server = await start(server.key, { ERRAND_DRAIN_S: '1' })
    provider.when('[handed over]', [{ fault: 'stall' }, { text: 'Done.' }])
    const id = await begin('[handed over]')
    await until(() => asked('[handed over]').length === 1)
    expect(await server.stop()).toBe(0)
    server = await start(server.key)
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  })
})
