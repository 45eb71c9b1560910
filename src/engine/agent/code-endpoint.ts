/**
 * The HTTP endpoint for calls of MCP tools by code in a sandbox. It never listens: the connections are made inside and arrive
 * as streams. `GET /tools` lists the tools, `POST /call` makes a call. Its client is the module `errand` (runner/mcp_module.py).
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { isShallow } from '../../domain/shallow.ts'
import { isJsonObject, type JsonObject } from '../../models/json.ts'

/** Calls that run at the same time. */
const MAX_RUNNING = 6
/** Requests that run or wait. */
const MAX_PENDING = 32
const TOO_MANY = `More than ${MAX_PENDING} calls are waiting. Make fewer at the same time.`
const MAX_BODY_BYTES = 256 * 1024
const MAX_HEADER_BYTES = 8 * 1024
const MAX_DEPTH = 100

export interface CodeCall {
  readonly server: string
  readonly tool: string
  readonly args: JsonObject
}

export interface CodeAnswer {
  /** A message that the code gets as an exception. */
  readonly failed: boolean
  readonly text: string
  readonly isJson: boolean
}

export interface CodeHandlers {
  /** The tools as JSON. */
  list(): CodeAnswer
  /** `signal` aborts when the code is gone. If it rejects, the connection is closed: the outcome is unknown. */
  call(call: CodeCall, signal: AbortSignal): Promise<CodeAnswer>
}

export interface CodeEndpoint {
  /** Serves a connection that was made inside the sandbox. */
  handle(connection: Duplex): void
  /** Closes all connections. Resolves when no call runs. */
  close(): Promise<void>
}

export function createCodeEndpoint(handlers: CodeHandlers): CodeEndpoint {
  const connections = new Set<Duplex>()
  const pending = new Set<Promise<void>>()
  const inTurn = createTurns()
  let closed = false

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    if (request.method === 'GET' && request.url === '/tools') {
      return reply(response, await inTurn(async () => handlers.list()))
    }
    if (request.method !== 'POST' || request.url !== '/call') return answer(response, 404, 'There is no such path.')
    const call = readCall(await readBody(request))
    if (typeof call === 'string') return answer(response, 400, call)
    const result = await inTurn(async () => {
      gone.signal.throwIfAborted()
      return handlers.call(call, gone.signal)
    })
    reply(response, result)
  }

  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
    if (pending.size >= MAX_PENDING) {
      // The client reads the answer when it has sent its body.
      return void request.resume().once('end', () => answer(response, 429, TOO_MANY))
    }
    const served: Promise<void> = serve(request, response)
      .catch(() => void response.destroy())
      .finally(() => pending.delete(served))
    pending.add(served)
  })
  server.on('clientError', (_, connection) => connection.destroy())

  return {
    handle(connection) {
      connection.on('error', () => {}) // `close` follows
      if (closed) return void connection.destroy()
      connections.add(connection)
      connection.once('close', () => connections.delete(connection))
      server.emit('connection', connection)
    },
    async close() {
      closed = true
      for (const connection of connections) connection.destroy()
      await Promise.all(pending)
    },
  }
}

/** Runs at most `MAX_RUNNING` jobs at the same time, first come first served. */
function createTurns() {
  let running = 0
  const waiting: (() => void)[] = []
  return async <T>(job: () => Promise<T>): Promise<T> => {
    if (running >= MAX_RUNNING) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await job()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}

/** Undefined if the body is too large. Rejects if the connection breaks. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size <= MAX_BODY_BYTES) chunks.push(chunk)
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString()
}

/** The call, or why there is none. */
function readCall(body: string | undefined): CodeCall | string {
  if (body === undefined) return `The arguments have more than ${MAX_BODY_BYTES / 1024} KiB.`
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return 'The request is not JSON.'
  }
  const { server, tool, args } = isJsonObject(value) ? value : {}
  if (typeof server !== 'string' || typeof tool !== 'string') return 'The request must name a server and a tool.'
  if (!isJsonObject(args) || !isShallow(args, MAX_DEPTH)) return 'The arguments must be an object, not nested too deep.'
  return { server, tool, args }
}

function reply(response: ServerResponse, { failed, text, isJson }: CodeAnswer): void {
  answer(response, failed ? 422 : 200, text, isJson)
}

function answer(response: ServerResponse, status: number, text: string, isJson = false): void {
  const body = Buffer.from(text)
  const type = isJson ? 'application/json' : 'text/plain; charset=utf-8'
  const headers = { 'content-type': type, 'content-length': body.length, connection: 'close' }
  response.writeHead(status, headers).end(body)
}
