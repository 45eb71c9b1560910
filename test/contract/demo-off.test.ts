/**
 * Checks a server without any model: it starts, logs that no model is configured, and answers 503 with instructions.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorOf, type Server, startServer } from '../support/server.ts'

let server: Server
beforeAll(async () => {
  server = await startServer({ env: { ERRAND_DEMO: 'off' } })
})
afterAll(async () => {
  await server?.stop()
})

const BODY = { instruction: 'What is 17 * 23 + 4?', tools: ['code_execution'] }

describe('a server without a model and with the demo model off', () => {
  it('answers 503 unavailable with what to configure, on every route that starts a run', async () => {
    for (const [path, more] of [
      ['/v1beta/interactions', {}],
      ['/v1beta/interactions', { stream: true }],
      ['/v1beta/interactions', { background: true }],
      ['/v1beta/interactions:stream', {}],
    ] as const) {
      const answer = await server.post(path, { ...BODY, ...more })
      expect(answer.status, answer.text).toBe(503)
      const error = errorOf(answer)
      expect(error).toMatchObject({ code: 'unavailable', retryable: true })
      for (const way of [/errand\.yaml/, /ANTHROPIC_API_KEY/, /ERRAND_DEMO/]) expect(error.message).toMatch(way)
    }
    expect((await server.get('/v1beta/interactions')).body.interactions).toEqual([])
  })

  it('does not offer the demo model under its own name either', async () => {
    const answer = await server.post('/v1beta/interactions', { ...BODY, model: 'demo' })
    expect([400, 503], answer.text).toContain(answer.status)
    if (answer.status === 400) expect(errorOf(answer).param).toBe('model')
  })

  it('still stores agents, and logs at the start that no model is configured', async () => {
    const made = await server.post('/v1beta/agents', { displayName: 'waiting' })
    expect(made.status, made.text).toBe(200)
    expect(server.output()).toMatch(/No model is configured/)
  })

  it('is alive, but not ready, because it cannot run interactions', async () => {
    expect((await server.get('/healthz')).status).toBe(200)
    const ready = await server.get('/readyz')
    expect(ready.status, ready.text).toBe(503)
    expect(ready.text).toMatch(/model/)
  })

  it('fails `errand run` with a message that says what to do, and without a stack trace', async () => {
    const { code, stdout, stderr } = await server.errand(['run', BODY.instruction])
    expect(code).not.toBe(0)
    expect(stdout).not.toContain('395')
    expect(stderr).toMatch(/errand\.yaml/)
    expect(stderr).not.toMatch(/\.ts:\d+/)
  })
})
