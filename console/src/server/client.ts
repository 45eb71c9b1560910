/** The generated client, made ours: signed in, one revision, and every failure a Problem. */
import { client } from '../api/client.gen.js'
import { accessHeaders } from './access.ts'
import { Problem } from './problem.ts'

const REVISION = '2026-05-20'

export function headers(): Record<string, string> {
  return { ...accessHeaders(), 'Api-Revision': REVISION }
}

client.setConfig({ baseUrl: location.origin, throwOnError: true, cache: 'no-store' })
client.interceptors.request.use((request) => {
  for (const [name, value] of Object.entries(headers())) request.headers.set(name, value)
  return request
})
client.interceptors.error.use((error, response) =>
  Problem.of(error instanceof Error ? undefined : error, response?.status ?? 0),
)

/** What an answer holds, of a call that throws where there is none. */
export async function data<T>(call: Promise<{ readonly data: T | undefined }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>
}
