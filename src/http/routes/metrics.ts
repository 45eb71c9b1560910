/**
 * Prometheus metrics: on the main port with the operator's metrics key, or on a separate port without a key. Without a
 * configured key, the path does not exist on the main port.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ErrandError } from '../../domain/errors.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

export type Exposition = Pick<Metrics, 'render'>

export function metricsRoutes(app: FastifyInstance, metrics: Exposition | undefined, key: string | undefined): void {
  if (!metrics || key === undefined) return
  app.get('/metrics', { config: { open: true }, schema: { hide: true } }, async (request, reply) => {
    if (!same(request.headers.authorization ?? '', `Bearer ${key}`)) {
      throw new ErrandError('unauthenticated', 'The metrics need the key of the operator: Authorization: Bearer ….')
    }
    const { text, contentType } = await metrics.render()
    return reply.type(contentType).send(text)
  })
}

/** Opens a server for `GET /metrics` only. Caller must close. Rejects if it can't listen. */
export async function openMetricsPort(
  metrics: Exposition,
  address: { readonly host: string; readonly port: number },
): Promise<{ close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') return response.writeHead(404).end()
    const { text, contentType } = await metrics.render()
    response.writeHead(200, { 'Content-Type': contentType }).end(text)
  })
  server.listen(address)
  await once(server, 'listening')
  return {
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Compares two strings in constant time. */
function same(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
