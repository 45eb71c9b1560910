/** Checks how a stream is followed and resumed: after every event, live, after its end, and after a restart. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, type Stream, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { checkEnded, createGate, outputOf, ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'
const CALL = { name: 'code_execution', args: { code: 'print(1)\nprint(2)' } }

let dataDir: string
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-resume-'))
  provider = await openFakeProvider()
  server = await startServer({ provider, dataDir, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

type Resume = (id: string, after: number) => Promise<Stream>
const WAYS: [string, Resume][] = [
  [
    'Last-Event-ID',
    (id, after) => server.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': String(after) }),
  ],
  ['?lastEventId', (id, after) => server.stream(`${PATH}/${id}:stream?lastEventId=${after}`)],
]

/** Creates a finished interaction with events of many kinds. */
async function finished(marker: string): Promise<{ id: string; all: WireEvent[] }> {
  provider.when(
    marker,
    { reasoning: ['Well', '.'], text: 'I look.', toolCalls: [CALL] },
    { text: ['It ', 'is ', '1.'] },
  )
  const body = { instruction: marker, tools: ['code_execution', 'time_machine'] }
  const stream = await server.stream(`${PATH}:stream`, body)
  const all = await stream.all()
  const id = stream.headers.get('x-interaction-id')!
  await checkEnded(server, id, all)
  return { id, all }
}

/** Asserts that resuming after each event except the last returns exactly the later events. */
async function exactlyTheRest(resume: Resume, id: string, all: readonly WireEvent[]): Promise<void> {
  for (let after = 0; after < all.length; after++) {
    const stream = await resume(id, after)
    expect(stream.status).toBe(200)
    expect(await stream.all(), `after event ${after}`).toEqual(all.slice(after))
  }
}

describe.each(WAYS)('resuming by %s', (way, resume) => {
  it('returns exactly the later events of a finished interaction', async () => {
    const { id, all } = await finished('[finished]')
    expect(all.length).toBeGreaterThan(8)
    await exactlyTheRest(resume, id, all)
  })

  it('returns no event and ends after the last event of a finished interaction', { timeout: 10_000 }, async () => {
    const { id, all } = await finished('[nothing left]')
    const stream = await resume(id, all.length)
    onTestFinished(() => stream.drop())
    expect(stream.status).toBe(200)
    expect(await stream.all()).toEqual([])
  })

  it('returns exactly the later events of a live interaction', async () => {
    const gate = createGate()
    const marker = `[live ${way}]`
    const text = ['Some ', 'words ', 'more.']
    provider.when(marker, { reasoning: 'Well.', toolCalls: [CALL] }, () => ({ text, hold: gate.opened }))
    const live = await server.stream(`${PATH}:stream`, { instruction: marker, tools: ['code_execution'] })
    const id = live.headers.get('x-interaction-id')!
    const seen: WireEvent[] = []
    for await (const event of live.events) {
      seen.push(event)
      if (event.event === 'tool_result') break
    }
    // The gate holds the second turn. Each follower starts after another of the events so far.
    const followers = await Promise.all(Array.from({ length: seen.length + 1 }, (_, after) => resume(id, after)))
    const rests = followers.map((stream) => stream.all())
    gate.open()
    const { events } = await Promise.all(rests).then(() => checkEnded(server, id))
    expect(events.slice(0, seen.length)).toEqual(seen)
    expect(events.length).toBeGreaterThan(seen.length)
    for (const [after, rest] of rests.entries()) expect(await rest, `after event ${after}`).toEqual(events.slice(after))
  })

  it('returns exactly the later events after a restart of the server', async () => {
    const { id, all } = await finished(`[restarted ${way}]`)
    await restart()
    await exactlyTheRest(resume, id, all)
    await checkEnded(server, id, all)
  })
})

describe('following a stream', () => {
  it('needs no event number to begin at the start', async () => {
    const { id, all } = await finished('[plain]')
    for (const path of [`${PATH}/${id}:stream`, `${PATH}/${id}%3Astream`]) {
      const stream = await server.stream(path)
      expect(stream.status).toBe(200)
      expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream\b/)
      expect(stream.headers.get('cache-control')).toContain('no-transform')
      expect(stream.headers.get('x-accel-buffering')).toBe('no')
      expect(stream.headers.get('x-interaction-id')).toBe(id)
      expect(stream.headers.get('location')).toContain(`${PATH}/${id}`)
      expect(await stream.all()).toEqual(all)
    }
  })

  it('sends the same events to two followers, one of which disconnects and resumes', async () => {
    const gates = [createGate(), createGate()]
    provider.when(
      '[two]',
      () => ({ text: 'x'.repeat(300), toolCalls: [CALL], hold: gates[0]!.opened, holdAfter: 1 }),
      () => ({ text: ['Last ', 'words.'], hold: gates[1]!.opened, holdAfter: 1 }),
    )
    const first = await server.stream(`${PATH}:stream`, { instruction: '[two]', tools: ['code_execution'] })
    const id = first.headers.get('x-interaction-id')!
    const second = await server.stream(`${PATH}/${id}:stream`)
    const steady = first.all()
    const seen: WireEvent[] = []
    for await (const event of second.events) {
      seen.push(event)
      if (event.event === 'partial_output') break
    }
    second.drop()
    gates[0]!.open()
    const back = await server.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': seen.at(-1)!.id! })
    const rest = back.all()
    gates[1]!.open()
    const all = await steady
    expect([...seen, ...(await rest)]).toEqual(all)
    const { interaction } = await checkEnded(server, id, all)
    expect(interaction.output).toBe(`${'x'.repeat(300)}\n\nLast words.`)
  })

  it('sends the same events to twenty concurrent followers', async () => {
    const gate = createGate()
    const text = Array.from({ length: 200 }, (_, i) => `word${i} `)
    provider.when('[twenty]', () => ({ text, hold: gate.opened, holdAfter: 100 }))
    const { body } = await server.post(PATH, { instruction: '[twenty]', background: true })
    const path = `${PATH}/${body.interactionId}:stream`
    const followers = await Promise.all(Array.from({ length: 20 }, () => server.stream(path)))
    const all = followers.map((follower) => follower.all())
    gate.open()
    const [first, ...others] = await Promise.all(all)
    for (const other of others) expect(other).toEqual(first)
    expect(outputOf(first!)).toBe(text.join(''))
    await checkEnded(server, body.interactionId, first)
  })

  it.each(['abc', '-1', '1.5', '1e3', '0x1', '99999999999999999999'])('after %s returns 400', async (value) => {
    const { id } = await finished('[bad]')
    for (const answer of [
      await server.get(`${PATH}/${id}:stream`, { 'last-event-id': value }),
      await server.get(`${PATH}/${id}:stream?lastEventId=${value}`),
    ]) {
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toMatchObject({ code: 'invalid_request' })
      expect(errorOf(answer).param).toMatch(/last-?event-?id/i)
    }
  })

  it('after a number beyond the last event of a finished interaction does not wait forever', async () => {
    const { id, all } = await finished('[beyond]')
    const answer = await server.get(`${PATH}/${id}:stream?lastEventId=${all.length + 5}`)
    if (answer.status === 200) expect(answer.text).not.toContain('data:')
    else expect(answer.status).toBe(400)
  })

  it('of an unknown interaction returns 404', async () => {
    const answer = await server.get(`${PATH}/int_0000000000000000000000:stream`)
    expect(answer.status).toBe(404)
    expect(errorOf(answer).code).toBe('not_found')
  })

  it('as EventSource does, reconnecting after every event, misses no event', async () => {
    const { id, all } = await finished('[drops]')
    const seen: WireEvent[] = []
    while (seen.at(-1)?.event !== 'completed') {
      const after = seen.at(-1)?.id
      const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
      const stream = await server.stream(`${PATH}/${id}:stream`, undefined, headers)
      const { value } = await stream.events.next()
      seen.push(value!)
      stream.drop()
    }
    expect(seen).toEqual(all)
  })
})

async function restart(): Promise<void> {
  const { key } = server
  expect(await server.stop()).toBe(0)
  server = await startServer({ provider, dataDir, key, config: { limits: ROOMY } })
}
