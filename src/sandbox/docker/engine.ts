/**
 * A client for the part of Docker's Engine API that the driver needs, over the daemon's unix socket. Paths have no version,
 * so every daemon answers in its newest one; the fields used here exist in all.
 */
import { type IncomingMessage, request } from 'node:http'
import type { Duplex, Readable } from 'node:stream'

/** An error status of the daemon. */
export class EngineError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'EngineError'
    this.status = status
  }
}

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
export type Query = Readonly<Record<string, string | number>>

export interface Engine {
  /**
   * Sends and receives JSON; undefined if the answer has no body. Throws EngineError, or an Error with a sentence if no
   * daemon answers.
   */
  ask<Answer>(method: Method, path: string, query?: Query, body?: object): Promise<Answer>
  /** Sends a tar archive. */
  give(method: Method, path: string, query: Query, archive: Readable): Promise<void>
  /** Returns the answer as a stream. The caller must read or destroy it. */
  read(path: string, query?: Query): Promise<Readable>
  /** Attaches to a container's stdin, stdout and stderr. */
  attach(container: string): Promise<Duplex>
}

/** Throws an Error with a sentence if the address is not that of a unix socket. */
export function createEngine(dockerHost: string): Engine {
  const socketPath = /^unix:\/\/(\/.+)$/.exec(dockerHost)?.[1]
  if (!socketPath) {
    throw new Error(
      `sandbox.dockerHost: ${dockerHost} is not the address of a unix socket (unix:///var/run/docker.sock).`,
    )
  }

  function send(method: Method, path: string, query: Query = {}, body?: object | Readable): Promise<IncomingMessage> {
    const archive = body !== undefined && 'pipe' in body ? body : undefined
    const text = body === undefined || archive ? undefined : JSON.stringify(body)
    const headers = archive
      ? { 'content-type': 'application/x-tar' }
      : text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => reject(explain(error, socketPath!))
      const call = request({ socketPath, method, path: path + search(query), headers, agent: false }, resolve)
      call.once('error', fail)
      if (archive) archive.once('error', (error) => call.destroy(error)).pipe(call)
      else call.end(text)
    })
  }

  async function answered(method: Method, path: string, query?: Query, body?: object | Readable) {
    const answer = await send(method, path, query, body)
    if (answer.statusCode! < 400) return answer
    throw new EngineError(answer.statusCode!, messageOf(await textOf(answer)) || answer.statusMessage!)
  }

  return {
    async ask<Answer>(method: Method, path: string, query?: Query, body?: object) {
      const text = await textOf(await answered(method, path, query, body))
      return (text ? JSON.parse(text) : undefined) as Answer
    },
    async give(method, path, query, archive) {
      await textOf(await answered(method, path, query, archive))
    },
    read: (path, query) => answered('GET', path, query),
    attach(container) {
      const path = `/containers/${container}/attach${search({ stream: 1, stdin: 1, stdout: 1, stderr: 1 })}`
      const headers = { connection: 'Upgrade', upgrade: 'tcp' }
      return new Promise((resolve, reject) => {
        const call = request({ socketPath, method: 'POST', path, headers, agent: false })
        call.once('error', (error) => reject(explain(error, socketPath)))
        call.once('response', async (answer) => {
          reject(new EngineError(answer.statusCode!, messageOf(await textOf(answer))))
        })
        call.once('upgrade', (_, socket, head) => {
          if (head.length > 0) socket.unshift(head)
          resolve(socket)
        })
        call.end()
      })
    },
  }
}

function search(query: Query): string {
  const text = new URLSearchParams(query as Record<string, string>).toString()
  return text && `?${text}`
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of answer.setEncoding('utf8')) text += piece
  return text
}

function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as { message: string }).message
  } catch {
    return text.trim()
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  ENOENT: 'install Docker (Debian, Ubuntu: apt-get install -y docker.io), or set sandbox.dockerHost to its socket',
  ECONNREFUSED: 'start the daemon (systemctl start docker)',
  EACCES: 'run Errand as root or as a member of the group docker',
}

function explain(error: NodeJS.ErrnoException, socketPath: string): Error {
  const remedy = REMEDIES[error.code ?? '']
  if (!remedy)
    return new Error(`The connection to the Docker daemon at ${socketPath} broke: ${error.message}`, { cause: error })
  return new Error(`The sandbox needs Docker, and no daemon answers at ${socketPath} (${error.code}): ${remedy}.`)
}
