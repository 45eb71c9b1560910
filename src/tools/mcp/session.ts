/**
 * One MCP session: the handshake, and the protocol version it settled on. A server is hostile until proven otherwise: it
 * gets no roots, no sampling and no elicitation; the library declines such requests.
 */
import { Client, SdkError, SdkErrorCode } from '@modelcontextprotocol/client'
import { ProgramError, type ServerTransport } from './transport.ts'

const CLIENT = { name: 'errand', version: '1.0.0' }
const CONNECT_MS = 15_000
/** Time for a server that does not know the first request of the newer protocol to answer with an error. */
const PROBE_MS = 5_000

/** Errors after which the handshake is tried once more, with the older protocol. */
const RETRY_AS_LEGACY = new Set<string>([
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.EraNegotiationFailed,
])

export interface Session {
  readonly client: Client
  readonly transport: ServerTransport
  /** The connection was closed, or the program has exited. */
  closed: boolean
}

/** Connects by the newer protocol, and by the older one if the server does not answer the newer. */
export async function openSession(
  dial: () => ServerTransport,
  onToolsChanged: () => void,
  signal: AbortSignal,
): Promise<Session> {
  try {
    return await handshake(dial(), 'auto', onToolsChanged, signal)
  } catch (error) {
    // Some servers never answer a request that they don't know; some programs exit on it.
    const cause = error instanceof ProgramError ? error.cause : error
    if (!(cause instanceof SdkError) || !RETRY_AS_LEGACY.has(cause.code) || signal.aborted) throw error
    return handshake(dial(), 'legacy', onToolsChanged, signal)
  }
}

async function handshake(
  transport: ServerTransport,
  mode: 'auto' | 'legacy',
  onToolsChanged: () => void,
  signal: AbortSignal,
): Promise<Session> {
  const client = new Client(CLIENT, {
    capabilities: {},
    versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
    // Tool output is for the model to judge, and Errand does not compile schemas from untrusted servers.
    jsonSchemaValidator: {
      getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
    },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged } },
  })
  // An error that matters also rejects the call that it belongs to.
  client.onerror = () => {}
  try {
    await client.connect(transport.transport, { timeout: CONNECT_MS, maxTotalTimeout: CONNECT_MS, signal })
  } catch (error) {
    await client.close().catch(() => {})
    const stderr = transport.stderr?.().trim()
    throw stderr ? new ProgramError(stderr, error) : error
  }
  const session: Session = { client, transport, closed: false }
  client.onclose = () => {
    session.closed = true
  }
  return session
}
