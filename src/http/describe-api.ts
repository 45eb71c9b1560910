/** The API as OpenAPI without a server that runs: for the documentation. */
import { pino } from 'pino'
import { readConfig } from '../config.ts'
import type { Limits } from '../domain/limits.ts'
import { type AppDeps, createApp } from './app.ts'
import type { JsonObject } from './openapi.ts'

/** As a server says of itself for which nothing is configured. Its routes are registered and none is called, so it needs no parts. */
export async function describeApi(): Promise<{ document: JsonObject; limits: Limits }> {
  const config = readConfig({ env: {}, cwd: '/nowhere', file: undefined })
  const parts = { desk: { accounts: {} } } as unknown as AppDeps
  const app = await createApp({ ...parts, config, log: pino({ level: 'silent' }) })
  await app.ready()
  const document = app.swagger() as unknown as JsonObject
  await app.close()
  return { document, limits: config.limits }
}
