/** Background jobs of a sandbox, by requests to the host. */
import type { Connection } from './connection.ts'
import { resultPath } from './inside.ts'
import { type JobRequest, type JobState, type Sandbox, SandboxError } from './port.ts'
import { type Address, UNSET_LIMITS } from './protocol.ts'

export async function listJobs(connection: Connection, address: Address): Promise<readonly JobState[]> {
  const list = { op: 'job', ...address, key: '', action: 'look', waitMs: 0, ...UNSET_LIMITS } as const
  return (await connection.start(list).done).jobs ?? []
}

export async function requestJob(
  connection: Connection,
  address: Address,
  { key, job, start, input, kill, waitMs }: JobRequest,
  signal: AbortSignal,
): ReturnType<Sandbox['job']> {
  const action = start ? 'start' : input !== undefined ? 'input' : kill ? 'kill' : 'look'
  const { code, ...how } = start ?? {}
  const request = {
    op: 'job',
    ...address,
    key,
    job,
    action,
    waitMs: Math.round(waitMs),
    ...how,
    ...UNSET_LIMITS,
  } as const
  const parts: Buffer[] = []
  const call = connection.start(request, Buffer.from(code ?? input ?? ''), (reply, payload) => {
    if (reply.op === 'out') parts.push(payload)
  })
  const leave = () => call.send({ op: 'abort' })
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    const { refused, job: state, from = 0, to = 0 } = await call.done
    if (refused === 'left') signal.throwIfAborted()
    if (refused === 'left' || (!refused && !state)) throw new SandboxError('lost', 'The sandbox gave up the request.')
    if (refused) return { refused }
    return { state: state!, output: Buffer.concat(parts).toString(), from, to, path: resultPath(address.sandbox, job) }
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
