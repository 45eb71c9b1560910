/** The OpenAPI documents without a running server: for the documentation. */
import { pino } from 'pino'
import { readConfig } from '../../config/read-config.ts'
import type { Limits } from '../../domain/limits.ts'
import { type AppDeps, createApp } from '../app.ts'
import { type JsonObject, publicApiOf, servedFrom } from './openapi.ts'

export interface ApiDescription {
  /** Everything that is served. */
  readonly everything: JsonObject
  /** The public API. */
  readonly api: JsonObject
  readonly limits: Limits
}

/** The API of a server with the default configuration, on its default address. Its routes are registered and never called. */
export async function describeApi(): Promise<ApiDescription> {
  const config = readConfig({ env: {}, cwd: '/nowhere', file: undefined })
  const parts = { console: { accounts: {} } } as unknown as AppDeps
  const app = await createApp({ ...parts, config, log: pino({ level: 'silent' }) })
  await app.ready()
  const everything = servedFrom(app.swagger() as unknown as JsonObject, `http://${config.host}:${config.port}`)
  await app.close()
  return { everything, api: publicApiOf(everything), limits: config.limits }
}
