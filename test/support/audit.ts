/** The audit records of an interaction, read over HTTP, without timestamps. */
import type { Server } from './server.ts'

export async function auditOf(server: Server, id: string): Promise<object[]> {
  const { body } = await server.get(`/v1beta/interactions/${id}/audit?pageSize=100`)
  return body.entries.map(({ time, ...entry }: { time: string }) => entry)
}
