/**
 * R14: the model's stream dies after fragments of the answer were sent: it ends, is reset, sends an error or falls silent,
 * behind any fragment, with tools or without. What was shown stands, once: the model is not asked again.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, type Fault, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const RUNS = rounds(100, 20)
const FAULTS = ['truncate-after', 'reset-after', 'error-event-after', 'stall-after'] as const
const FRAGMENTS = Array.from({ length: 12 }, (_, i) => `${`${i} `.repeat(30)}, `)
const random = seeded('R14')

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', idleTimeoutS: 1 }
  server = await startServer({ config: { models: { 'svc-3.5-flash': model }, limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

test('an answer that broke off is failed with what was shown of it, and never starts over', {
  timeout: RUNS * 10_000,
}, async () => {
  await Promise.all(
    Array.from({ length: RUNS }, async (_, i) => {
      const shown = random.whole(1, FRAGMENTS.length)
      const fault: Fault = `${random.pick(FAULTS)}:${shown}`
      const tools = random.pick([[], ['code_execution']])
      const marker = `[broken ${i}.]`
      provider.when(marker, [{ text: FRAGMENTS, fault }, { text: 'Another answer.' }])
      const answer = await server.post('/v1beta/interactions', { instruction: marker, tools })
      const asked = provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker))
      // A reset takes with it what was sent and not read yet: where that was all, nothing was shown, and it is asked again.
      if (fault.startsWith('reset') && answer.status === 200) {
        expect([answer.body.output, asked.length], fault).toEqual(['Another answer.', 2])
        return
      }
      const { code, interactionId } = errorOf(answer)
      expect(code, fault).toBe('model_error')
      const { interaction } = await checkEnded(server, interactionId!)
      const sent = FRAGMENTS.slice(0, shown).join('')
      expect(interaction.status, fault).toBe('failed')
      if (fault.startsWith('reset')) expect(sent.startsWith(interaction.output), fault).toBe(true)
      else expect(interaction.output, fault).toBe(sent)
      expect(asked, fault).toHaveLength(1)
    }),
  )
  figure('R14', 'answers that broke off, each failed with exactly what was shown', RUNS)
})
