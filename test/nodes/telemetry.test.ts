/**
 * Telemetry of several nodes: one trace across them, takeovers counted by the worker that made them, and database
 * connections.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import type { Server } from '../support/server.ts'
import { type Collector, openCollector } from '../telemetry/collector.ts'
import { sumOf } from '../telemetry/exposition.ts'
import { type Nodes, openNodes } from './start-nodes.ts'

const KEY = 'the-key-of-the-operator'

onPostgres('telemetry', (cluster) => {
  let provider: FakeProvider
  let collector: Collector
  let nodes: Nodes
  beforeEach(async () => {
    provider = await openFakeProvider()
    collector = await openCollector()
    nodes = openNodes(provider, await cluster().createDatabase(), { metrics: { key: KEY } })
  })
  afterEach(async () => {
    await nodes.close()
    await collector.close()
    await provider.close()
  })

  const start = (role: 'api' | 'worker', env: Record<string, string> = {}) =>
    nodes.start(role, {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', ...env },
    })
  const scrape = async (node: Server) => (await node.get('/metrics', { authorization: `Bearer ${KEY}` })).text

  test('a worker that takes over a run counts the takeover and continues the request’s trace', async () => {
    const api = await start('api')
    const first = await start('worker')
    let release = () => {}
    const hold = new Promise<void>((resolve) => {
      release = resolve
    })
    provider.when('[long]', { text: 'Done.', hold })
    const { body } = await api.post('/v1beta/interactions', { instruction: 'long [long]', background: true })
    await provider.received(1)
    await first.stop('SIGKILL')
    release()
    // The lease is long enough that this worker can't lose it, however busy the machine is.
    const second = await start('worker', { ERRAND_LEASE_S: '30' })
    const events = await (await api.stream(`/v1beta/interactions/${body.interactionId}:stream`)).all()
    expect(events.at(-1)!.data).toMatchObject({ status: 'completed' })

    const told = await scrape(second)
    expect(sumOf(told, 'errand_interaction_takeovers_total')).toBe(1)
    expect(sumOf(told, 'errand_interactions_ended_total', { status: 'completed' })).toBe(1)
    expect(sumOf(told, 'errand_interactions_accepted_total')).toBe(0)
    expect(sumOf(told, 'errand_database_connections', { state: 'open' })).toBeGreaterThan(0)
    const asked = await scrape(api)
    expect(sumOf(asked, 'errand_interactions_accepted_total')).toBe(1)
    expect(sumOf(asked, 'errand_worker_slots')).toBe(0)
    for (const text of [told, asked]) expect(sumOf(text, 'errand_interactions', { state: 'running' })).toBe(0)

    await nodes.close()
    const [request] = collector.spans.filter(({ name }) => name === 'POST /v1beta/interactions')
    const run = collector.spans.findLast(({ name }) => name === 'invoke_agent')
    expect(run).toMatchObject({ traceId: request!.traceId, parentSpanId: request!.spanId })
    expect(run!.attributes['errand.run.epoch']).toBeGreaterThan(1)
    expect(run!.attributes['errand.interaction.status']).toBe('completed')
  })
})
