/** The generated client, made ours: in the session's project, one revision, and every failure a Problem. */
import { client } from '../api/client.gen.js'
import { Problem } from './problem.ts'

const REVISION = '2026-05-20'
let project: string | undefined

/** In which project all calls of the API are made from now on. */
export function workIn(projectId: string | undefined): void {
  project = projectId
}

/** The session itself is a cookie, which no script sees. */
export function headers(): Record<string, string> {
  return { 'Api-Revision': REVISION, 'X-Errand-Console': '1', ...(project && { 'X-Errand-Project': project }) }
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
