/**
 * Checks how an interaction is ended from outside: cancel in every stage, and the deadline with processes that ignore
 * SIGTERM. When the answer arrives, no process of the run is left.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith, stubbornTree } from '../support/processes.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOOLS = ['code_execution']

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  const limits = { ...ROOMY, runningPerProject: 2, queuedPerProject: 2 }
  server = await startServer({ provider, config: { limits } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

async function begin(instruction: string, fields: object = {}): Promise<string> {
  const { status, body } = await server.post(PATH, { instruction, background: true, ...fields })
  expect(status).toBe(200)
  return body.interactionId
}

function cancel(id: string) {
  return server.post(`${PATH}/${id}:cancel`)
}

function asked(marker: string) {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker))
}

describe('cancel', () => {
  it('ends a queued interaction without a model call', async () => {
    const gate = createGate()
    provider.when('[occupies]', () => ({ text: 'Later.', hold: gate.opened }))
    const busy = [await begin('[occupies] 1'), await begin('[occupies] 2')]
    await until(() => asked('[occupies]').length === 2)
    const blocked = server.post(PATH, { instruction: '[waits] blocked', labels: { test: 'blocked' } })
    const waiting = await until(async () => {
      const { body } = await server.get(`${PATH}?label.test=blocked`)
      return body.interactions[0]
    })
    expect((await server.get(`${PATH}/${waiting.id}`)).body).toMatchObject({ status: 'running', stage: 'queued' })
    const second = await begin('[waits] second')

    const tooMany = await server.post(PATH, { instruction: '[waits] third' })
    expect(tooMany.status).toBe(503)
    expect(errorOf(tooMany)).toMatchObject({ code: 'unavailable', retryable: true })

    expect((await cancel(waiting.id)).status).toBe(200)
    expect((await cancel(second)).status).toBe(200)
    const answer = await blocked
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ status: 'cancelled', output: '' })
    await checkEnded(server, waiting.id)
    await checkEnded(server, second)
    gate.open()
    for (const id of busy) expect(await ended(server, id)).toMatchObject({ status: 'completed' })
    expect(asked('[waits]')).toEqual([])
  })

  it('frees a slot for queued interactions, which run in the order of arrival', async () => {
    const gate = createGate()
    provider.when('[room]', () => ({ text: 'Later.', hold: gate.opened }))
    const busy = [await begin('[room] 1'), await begin('[room] 2')]
    const queued = [await begin('[queued] 1'), await begin('[queued] 2')]
    expect((await cancel(busy[0]!)).status).toBe(200)
    for (const id of queued) expect(await ended(server, id)).toMatchObject({ status: 'completed' })
    const order = asked('[queued]').map(({ body }) => JSON.stringify(body.messages).match(/\[queued\] (\d)/)![1])
    expect(order).toEqual(['1', '2'])
    gate.open()
    await ended(server, busy[1]!)
    for (const id of [...busy, ...queued]) await checkEnded(server, id)
  })

  it('ends a run whose model is streaming, closes the connection, and keeps the output so far', async () => {
    provider.when('[streams]', { text: ['Half ', 'done'], fault: 'stall-after:1' })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[streams]' })
    const id = stream.headers.get('x-interaction-id')!
    const seen = []
    for await (const event of stream.events) {
      seen.push(event)
      if (event.event === 'partial_output') expect((await cancel(id)).status).toBe(200)
    }
    expect(seen.at(-1)).toMatchObject({ event: 'completed', data: { interactionId: id, status: 'cancelled' } })
    expect(seen.map(({ event }) => event)).not.toContain('error')
    expect(await asked('[streams]')[0]!.ended).toBe('closed')
    const { interaction } = await checkEnded(server, id, seen)
    expect(interaction).toMatchObject({ status: 'cancelled', output: 'Half ' })
  })

  it('ends a run whose model has not answered yet', async () => {
    provider.when('[silent]', { fault: 'stall' })
    const id = await begin('[silent]')
    await until(() => asked('[silent]').length === 1)
    expect((await cancel(id)).status).toBe(200)
    expect((await server.get(`${PATH}/${id}`)).body).toMatchObject({ status: 'cancelled', output: '' })
    expect(await asked('[silent]')[0]!.ended).toBe('closed')
    await checkEnded(server, id)
  })

  it('ends a run whose code is running; no process of the sandbox is left when 200 arrives', async () => {
    const marker = `marker-${randomUUID()}`
    provider.when('[code]', { toolCalls: [{ name: 'code_execution', args: { code: stubbornTree(marker) } }] })
    const id = await begin('[code]', { tools: TOOLS })
    await until(async () => (await processesWith(marker)).length >= 3)
    const answer = await cancel(id)
    const left = await processesWith(marker)
    expect(answer.status).toBe(200)
    expect(left).toEqual([])
    const { interaction } = await checkEnded(server, id)
    expect(interaction.status).toBe('cancelled')
    expect(interaction.executionTrace[0]).toMatchObject({ type: 'tool_call', name: 'code_execution' })
    expect(interaction.usage).toMatchObject({ input_tokens: 10, output_tokens: 5, model_calls: 1 })
    expect(interaction.usage.sandbox_ms).toBeGreaterThan(0)
  })

  it('counts an interrupted tool call in usage, because the trace contains it', async () => {
    const code = "import time; print('begun', flush=True); time.sleep(1000)"
    provider.when('[counts]', { toolCalls: [{ name: 'code_execution', args: { code } }] })
    const stream = await server.stream(`${PATH}:stream`, { instruction: '[counts]', tools: TOOLS })
    const id = stream.headers.get('x-interaction-id')!
    for await (const { event } of stream.events) {
      if (event === 'tool_output') expect((await cancel(id)).status).toBe(200)
    }
    const { interaction } = await checkEnded(server, id)
    expect(interaction.executionTrace).toMatchObject([{ type: 'tool_call' }])
    expect(interaction.usage.tool_calls).toBe(1)
  })

  it('ends a run between two steps and destroys its idle sandbox', async () => {
    const marker = `marker-${randomUUID()}`
    const code = `
import os, subprocess
subprocess.Popen(['setsid', 'sleep', '1000'], env=dict(os.environ, MARKER='${marker}'), stdout=subprocess.DEVNULL)`
    provider.when('[idles]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { fault: 'stall' })
    const id = await begin('[idles]', { tools: TOOLS })
    await until(() => asked('[idles]').length === 2)
    expect((await cancel(id)).status).toBe(200)
    expect(await processesWith(marker)).toEqual([])
    await checkEnded(server, id)
  })

  it('makes the blocked POST return 200 with status cancelled', async () => {
    provider.when('[blocks]', { text: ['Half ', 'done'], fault: 'stall-after:1' })
    const blocked = server.post(PATH, { instruction: '[blocks]', labels: { test: 'blocks' } })
    await until(() => asked('[blocks]').length === 1)
    const [{ id }] = (await server.get(`${PATH}?label.test=blocks`)).body.interactions
    expect((await cancel(id)).status).toBe(200)
    const { status, body } = await blocked
    expect(status).toBe(200)
    expect(body).toMatchObject({ interactionId: id, status: 'cancelled' })
    expect(body).toEqual((await checkEnded(server, id)).interaction)
  })

  it('works the same by /{id}/cancel', async () => {
    provider.when('[slash]', { fault: 'stall' })
    const id = await begin('[slash]')
    expect((await server.post(`${PATH}/${id}/cancel`)).status).toBe(200)
    await checkEnded(server, id)
    expect((await server.post(`${PATH}/${id}/cancel`)).status).toBe(200)
  })

  it('is idempotent, even with concurrent requests', async () => {
    provider.when('[again]', { fault: 'stall' })
    const id = await begin('[again]')
    const answers = await Promise.all(Array.from({ length: 8 }, () => cancel(id)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect((await cancel(id)).status).toBe(200)
    const { interaction } = await checkEnded(server, id)
    expect(interaction.status).toBe('cancelled')
  })

  it('returns 409 for a completed or failed interaction and does not change it', async () => {
    provider.when('[fails]', { fault: 'status:400' })
    const completed = (await server.post(PATH, { instruction: 'completes' })).body.interactionId
    const failed = errorOf(await server.post(PATH, { instruction: '[fails]' })).interactionId!
    for (const [id, status] of [
      [completed, 'completed'],
      [failed, 'failed'],
    ]) {
      for (const path of [`${PATH}/${id}:cancel`, `${PATH}/${id}/cancel`]) {
        const answer = await server.post(path)
        expect(answer.status).toBe(409)
        expect(errorOf(answer).code).toBe('conflict')
      }
      expect((await checkEnded(server, id)).interaction.status).toBe(status)
    }
  })

  it.each(['int_0000000000000000000000', 'nonsense'])('returns 404 for %s', async (id) => {
    for (const path of [`${PATH}/${id}:cancel`, `${PATH}/${id}/cancel`]) {
      const answer = await server.post(path)
      expect(answer.status).toBe(404)
      expect(errorOf(answer).code).toBe('not_found')
    }
  })

  it('has one of two outcomes if the run ends at the same time, and every endpoint reports the same one', async () => {
    for (let i = 0; i < 20; i++) {
      const gate = createGate()
      const marker = `[race ${i}.]`
      provider.when(marker, () => ({ text: 'Done.', hold: gate.opened, holdAfter: 1 }))
      const stream = await server.stream(`${PATH}:stream`, { instruction: marker })
      const id = stream.headers.get('x-interaction-id')!
      await until(() => asked(marker).length === 1)
      gate.open()
      const [answer, seen] = await Promise.all([cancel(id), stream.all()])
      const { interaction } = await checkEnded(server, id, seen)
      if (answer.status === 200) expect(interaction.status).toBe('cancelled')
      else {
        expect(answer.status).toBe(409)
        expect(interaction.status).toBe('completed')
      }
    }
  })
})

describe('the deadline', () => {
  it('kills a process tree that ignores SIGTERM', async () => {
    const marker = `marker-${randomUUID()}`
    provider.when('[stubborn]', { toolCalls: [{ name: 'code_execution', args: { code: stubbornTree(marker) } }] })
    const answered = server.post(PATH, { instruction: '[stubborn]', tools: TOOLS, policy: { maxTurnDuration: 3 } })
    await until(async () => (await processesWith(marker)).length >= 3)
    const answer = await answered
    const left = await processesWith(marker)
    expect(answer.status).toBe(504)
    const { code, interactionId } = errorOf(answer)
    expect(code).toBe('deadline_exceeded')
    expect(left).toEqual([])
    const { interaction } = await checkEnded(server, interactionId!)
    expect(interaction).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
    expect(interaction.executionTrace[0]).toMatchObject({ type: 'tool_call' })
  })
})

describe('the end of a run', () => {
  it('kills processes that a finished step left running', async () => {
    const marker = `marker-${randomUUID()}`
    const code = `
import os, subprocess
subprocess.Popen(['setsid', 'sleep', '1000'], env=dict(os.environ, MARKER='${marker}'))
print('left one')`
    provider.when('[daemon]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Done.' })
    const { body } = await server.post(PATH, { instruction: '[daemon]', tools: TOOLS })
    expect(body).toMatchObject({ status: 'completed' })
    // The answer does not wait until the sandbox is destroyed, but the sandbox is destroyed soon after.
    await until(async () => (await processesWith(marker)).length === 0)
    await checkEnded(server, body.interactionId)
  })
})
