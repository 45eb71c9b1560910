/** Configures the generated API client: project, API revision, and errors as Problem. */
import { client } from '../api/client.gen.js'
import { Problem } from './problem.ts'

const REVISION = '2026-05-20'
let project: string | undefined

/** Sets the project of all further API calls. */
export function setProject(projectId: string | undefined): void {
  project = projectId
}

/** Headers of API calls. The session is an HTTP-only cookie. */
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

/** The data of an answer. The client throws if the call failed. */
export async function data<T>(call: Promise<{ readonly data: T | undefined }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>
}
