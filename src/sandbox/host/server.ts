/**
 * The host's door: a unix socket that speaks frames. A client's end ends nothing but its file transfers: steps run on, and
 * whoever comes next takes them up. With no client for the grace time, or when the last one asks, the host ends.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createFrameReader, type Frame, writeFrame } from '../frames.ts'
import type { SandboxFacts } from '../port.ts'
import type { HostRequest, HostSettings, ReplyBody } from '../protocol.ts'
import type { Host } from './host.ts'
import { errorReply } from './steps.ts'

export interface ServerOptions {
  readonly socketPath: string
  /** Tells this program with its fixed settings from another. */
  readonly fingerprint: string
  readonly facts: SandboxFacts
  readonly settings: HostSettings
  /** The host is to end: nobody is left who needs it. Called once. */
  readonly onDone: () => void
}

/** What more can be said to a request that is under way. */
interface InFlightRequest {
  hear(request: HostRequest, payload: Buffer): void
  /** The client is gone. */
  drop(): void
}

const HANDED_ON = ['exec', 'read', 'write', 'list', 'spawn', 'listen', 'env'] as const
type HandedOn = (typeof HANDED_ON)[number]

function isHandedOn(request: HostRequest): request is HostRequest & { op: HandedOn } {
  return (HANDED_ON as readonly string[]).includes(request.op)
}

const NOTHING_MORE: InFlightRequest = { hear() {}, drop() {} }

export async function openServer(host: Host, options: ServerOptions): Promise<Server> {
  const clients = new Set<Socket>()
  let { graceMs } = options.settings
  let done = false
  let grace: NodeJS.Timeout | undefined

  function finish(): void {
    if (done) return
    done = true
    clearTimeout(grace)
    options.onDone()
  }
  function watchGrace(): void {
    clearTimeout(grace)
    if (clients.size === 0) grace = setTimeout(finish, graceMs)
  }

  /** Requests that are answered by the host itself. */
  async function answer(request: HostRequest, socket: Socket, signal: AbortSignal): Promise<ReplyBody> {
    const others = clients.size - (clients.has(socket) ? 1 : 0)
    switch (request.op) {
      case 'hello':
        if (request.fingerprint !== options.fingerprint) return { op: 'done', welcome: false, others }
        clients.add(socket)
        graceMs = request.settings.graceMs
        host.configure(request.settings)
        watchGrace()
        return { op: 'done', welcome: true, others }
      case 'open':
        return { op: 'done', fresh: await host.open(request.spec, signal) }
      case 'destroy':
        await host.destroy(request.sandbox, request.name, request.epoch)
        return { op: 'done' }
      case 'living':
        return { op: 'done', living: host.living(), warm: host.warm() }
      case 'facts':
        return { op: 'done', facts: options.facts }
      case 'close':
        if (others === 0) finish()
        return { op: 'done', others }
      default:
        throw new Error(`The sandbox host does not know the request ${request.op}.`)
    }
  }

  /** Requests that are handed on to a sandbox. */
  function handOn(request: HostRequest & { op: HandedOn }, payload: Buffer, reply: Reply): InFlightRequest {
    const { id: _, sandbox = '', name = 'main', epoch = 0, ...body } = request
    const living = host.find(sandbox, name, epoch)
    if (body.op === 'exec') {
      const { key, language, timeoutMs } = body
      const { outputBytes } = living.limits
      const run = living.steps.run({ key, language, timeoutMs, outputBytes }, payload, reply)
      return { hear: ({ op }) => op === 'kill' && run.kill(), drop: () => run.leave() }
    }
    const more = living.runner.start(body, payload, ({ id: _, ...told }, bytes) => reply(told as ReplyBody, bytes))
    return {
      hear(word, bytes) {
        if (word.op === 'kill') more({ op: 'kill' })
        else if (word.op === 'chunk' || word.op === 'ack' || word.op === 'commit' || word.op === 'abort')
          more({ op: word.op, conn: word.conn }, bytes)
      },
      // What nobody listens to any more ends: whoever comes next begins it anew.
      drop: () => more({ op: body.op === 'spawn' ? 'kill' : 'abort' }),
    }
  }

  function serve(socket: Socket): void {
    const inFlight = new Map<number, InFlightRequest>()
    const send = (id: number): Reply => {
      return (body, payload) => {
        if (body.op === 'done' || body.op === 'error') inFlight.delete(id)
        if (!socket.destroyed) writeFrame(socket, { ...body, id }, payload)
      }
    }
    function begin(request: HostRequest, payload: Buffer): void {
      const reply = send(request.id)
      if (isHandedOn(request)) {
        inFlight.set(request.id, NOTHING_MORE) // before the answer, which may be at hand
        try {
          const handed = handOn(request, payload, reply)
          if (inFlight.has(request.id)) inFlight.set(request.id, handed)
        } catch (error) {
          reply(errorReply(error))
        }
        return
      }
      const abort = new AbortController()
      inFlight.set(request.id, { hear: ({ op }) => op === 'kill' && abort.abort(), drop: () => abort.abort() })
      answer(request, socket, abort.signal).then(reply, (error) => reply(errorReply(error)))
    }
    const read = createFrameReader<HostRequest>(({ header, payload }: Frame<HostRequest>) => {
      if (inFlight.has(header.id)) inFlight.get(header.id)!.hear(header, payload)
      else if (!['chunk', 'ack', 'commit', 'abort', 'kill'].includes(header.op)) begin(header, payload)
    })
    socket.on('data', (bytes) => {
      try {
        read(bytes)
      } catch {
        socket.destroy()
      }
    })
    socket.on('error', () => {}) // `close` follows
    socket.on('close', () => {
      for (const { drop } of inFlight.values()) drop()
      clients.delete(socket)
      watchGrace()
    })
  }

  const server = createServer(serve)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options.socketPath, resolve))
  watchGrace()
  return server
}

type Reply = (body: ReplyBody, payload?: Uint8Array) => void
