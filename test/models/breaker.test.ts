/** The circuit breaker of a provider: it opens after repeated failures, and one trial call closes it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createBreaker, guardModel } from '../../src/models/breaker.ts'
import type { ModelHealth } from '../../src/models/port.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { ask, call, failureOf, modelAt, openDispatcher } from './calling.ts'

const dispatcher = openDispatcher()
let provider: FakeProvider
beforeAll(async () => {
  provider = await openFakeProvider()
})
beforeEach(() => provider.reset())
afterAll(async () => {
  await provider.close()
  await dispatcher.destroy()
})

function guarded() {
  const clock = { now: 0 }
  const changes: ModelHealth['state'][] = []
  const breaker = createBreaker({ now: () => clock.now, onChange: ({ state }) => changes.push(state) })
  const guard = () => guardModel(modelAt(provider.url, dispatcher, { maxTries: 1 }).model, breaker)
  // Two models of one provider.
  const [model, other] = [guard(), guard()]
  return { clock, changes, breaker, model, other, go: (text = 'Go') => call(model, ask(text)) }
}

test('opens after five consecutive failures, and lets one trial call through after the rest', async () => {
  provider.when('Go', [{ fault: 'status:503' }])
  const { clock, changes, breaker, go, other } = guarded()
  expect(breaker.health()).toEqual({ state: 'untried', failures: 0 })
  for (let i = 0; i < 5; i++) expect(failureOf((await go()).outcome).message).toContain('503')
  expect(breaker.health()).toMatchObject({ state: 'resting', failures: 5, restsUntil: 10_000 })

  const refused = failureOf((await call(other, ask('Go'))).outcome)
  expect(refused).toMatchObject({ kind: 'overloaded', retryable: true })
  expect(refused.message).toMatch(/failed 5 times in a row.*asked again in 10 s.*503/)
  expect(provider.requests).toHaveLength(5)

  clock.now = 10_000
  const trials = await Promise.all([go(), go(), go()])
  expect(provider.requests).toHaveLength(6)
  expect(trials.map(({ outcome }) => failureOf(outcome).message).filter((text) => text.includes('trial'))).toHaveLength(
    2,
  )
  // It failed again, so the rest is twice as long.
  expect(breaker.health()).toMatchObject({ state: 'resting', restsUntil: 30_000 })
  for (let i = 0; i < 6; i++) {
    clock.now = breaker.health().restsUntil!
    await go()
  }
  expect(breaker.health().restsUntil! - clock.now).toBe(60_000)

  clock.now = breaker.health().restsUntil!
  provider.reset()
  provider.when('Go', [{ text: 'Back.' }])
  expect((await go()).text).toBe('Back.')
  expect(breaker.health()).toEqual({ state: 'up', failures: 0 })
  expect((await call(other, ask('Go'))).text).toBe('Back.')
  expect(changes.at(-1)).toBe('up')
})

test.each([
  ['an answer', { text: 'Fine.' }],
  ['a refusal', { fault: 'status:400' }],
  ['an answer that broke off', { text: ['Half ', 'done'], fault: 'reset-after:1' }],
] as const)('%s resets the count', async (_, reply) => {
  provider.when('Go', [{ fault: 'reset' }])
  provider.when('Well', [reply])
  const { breaker, go } = guarded()
  for (let i = 0; i < 4; i++) await go()
  await go('Well')
  for (let i = 0; i < 4; i++) await go()
  expect(breaker.health()).toMatchObject({ state: 'failing', failures: 4 })
})

test('lets the next call be the trial if a caller cancels the first', async () => {
  provider.when('Go', [{ fault: 'status:500' }])
  const { clock, model, go } = guarded()
  for (let i = 0; i < 5; i++) await go()
  clock.now = 10_000
  provider.reset()
  provider.when('Go', [{ fault: 'stall' }, { text: 'Back.' }])
  const abort = new AbortController()
  const cancelled = call(model, ask('Go'), abort.signal)
  await provider.received(1)
  abort.abort()
  expect(failureOf((await cancelled).outcome).kind).toBe('aborted')
  expect((await go()).text).toBe('Back.')
})
