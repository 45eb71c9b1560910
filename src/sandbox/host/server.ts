/**
 * The host's server: a unix socket with frames. When a client disconnects, its file transfers end and its steps go on; the
 * next client joins them. The host ends after the grace time without a client, or when its last client asks for it.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createFrameReader, type Frame, writeFrame } from '../frames.ts'
import { resultBytes, resultPath } from '../inside.ts'
import type { SandboxFacts } from '../port.ts'
import type { HostRequest, HostSettings, OutputLimits, ReplyBody, RunnerRequestBody } from '../protocol.ts'
import type { Host, LiveSandbox } from './host.ts'
import { errorReply } from './steps.ts'

export interface ServerOptions {
  readonly socketPath: string
  /** Hash of this program and its fixed settings. */
  readonly fingerprint: string
  readonly facts: SandboxFacts
  readonly settings: HostSettings
  /** Called once, when no client needs the host any more. */
  readonly onDone: () => void
}

/** A request that is not finished: takes further messages. */
interface InFlightRequest {
  receive(request: HostRequest, payload: Buffer): void
  /** The client has disconnected. */
  drop(): void
}

const FORWARDED = ['exec', 'job', 'read', 'write', 'list', 'spawn', 'listen', 'env'] as const
type Forwarded = (typeof FORWARDED)[number]

function isForwarded(request: HostRequest): request is HostRequest & { op: Forwarded } {
  return (FORWARDED as readonly string[]).includes(request.op)
}

const NOTHING_MORE: InFlightRequest = { receive() {}, drop() {} }

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

  /** Answers a request for the host itself. */
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

  /** Forwards a request to a sandbox. */
  function forward(request: HostRequest & { op: Forwarded }, payload: Buffer, reply: Reply): InFlightRequest {
    const { id: _, sandbox = '', name = 'main', epoch = 0, ...body } = request
    const living = host.find(sandbox, name, epoch)
    if (body.op === 'exec') {
      const { key, language, timeoutMs } = body
      const limits = outputLimits(living, key)
      const run = living.steps.run({ key, language, timeoutMs, ...limits }, payload, reply)
      return { receive: ({ op }) => op === 'kill' && run.kill(), drop: () => run.leave() }
    }
    if (body.op === 'job') return forwardJob(living, body, payload, reply)
    const more = living.runner.start(body, payload, ({ id: _, ...body }, bytes) => reply(body as ReplyBody, bytes))
    return {
      receive(message, bytes) {
        if (message.op === 'kill') more({ op: 'kill' })
        else if (message.op === 'chunk' || message.op === 'ack' || message.op === 'commit' || message.op === 'abort')
          more({ op: message.op, conn: message.conn }, bytes)
      },
      // Ends what has lost its client; the next client starts it again.
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
      if (isForwarded(request)) {
        inFlight.set(request.id, NOTHING_MORE) // first, because the answer may come at once
        try {
          const forwarded = forward(request, payload, reply)
          if (inFlight.has(request.id)) inFlight.set(request.id, forwarded)
        } catch (error) {
          reply(errorReply(error))
        }
        return
      }
      const abort = new AbortController()
      inFlight.set(request.id, { receive: ({ op }) => op === 'kill' && abort.abort(), drop: () => abort.abort() })
      answer(request, socket, abort.signal).then(reply, (error) => reply(errorReply(error)))
    }
    const read = createFrameReader<HostRequest>(({ header, payload }: Frame<HostRequest>) => {
      if (inFlight.has(header.id)) inFlight.get(header.id)!.receive(header, payload)
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

/** Milliseconds after its time at which a sandbox that has not answered counts as stuck. */
const LATE_MS = 10_000

/** A client that disconnects leaves the job running, and its output to the next client. */
function forwardJob(
  living: LiveSandbox,
  { job = '', ...request }: Extract<RunnerRequestBody, { op: 'job' }>,
  payload: Buffer,
  reply: Reply,
): InFlightRequest {
  const late = setTimeout(() => void living.end().catch(() => {}), request.waitMs + LATE_MS)
  const body = { ...request, ...(job && { job }), ...outputLimits(living, job) }
  const more = living.runner.start(body, payload, ({ id: _, ...answer }, bytes) => {
    if (answer.op === 'done' || answer.op === 'error') clearTimeout(late)
    reply(answer as ReplyBody, bytes)
  })
  const leave = () => more({ op: 'abort' })
  return { receive: ({ op }) => op === 'abort' && leave(), drop: leave }
}

function outputLimits({ interactionId, limits }: LiveSandbox, key: string): OutputLimits {
  return { outputBytes: limits.outputBytes, saveAs: resultPath(interactionId, key), saveBytes: resultBytes(limits) }
}
