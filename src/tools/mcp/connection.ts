/**
 * One server in one run: connected, its tools listed, listed anew when it says that they changed, and told goodbye.
 *
 *   connecting ──▶ ready ──list_changed──▶ listing ──▶ ready … ──▶ closed
 *
 * A server may be hostile: lists are read page by page up to bounds, an answer is bounded by its fetch, a wait by its
 * time, and a server that never stops changing its list is no longer listened to. It gets nothing of us: no roots, no
 * sampling, no elicitation; the library declines what it asks for.
 */
import {
  type CallToolResult,
  Client,
  type GetPromptResult,
  type ListPromptsResult,
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  type Progress,
  type ReadResourceResult,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool as ServerTool,
  type Transport,
} from '@modelcontextprotocol/client'

const CLIENT = { name: 'errand', version: '1.0.0' }
const CONNECT_MS = 15_000
/** A server that does not know the newer protocol's first question has so long to say so. */
const PROBE_MS = 5_000
const LIST_MS = 20_000
/** Short: whoever cancels a run waits for it. */
const GOODBYE_MS = 500
const MAX_PAGES = 64
/** Before the filter; more are not looked at. */
const MAX_LISTED = 5_000
const MAX_RELISTS = 50

const ASK_AGAIN = new Set<string>([
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.EraNegotiationFailed,
])

export interface CallLimits {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly onProgress?: (progress: Progress) => void
}

export interface Connection {
  readonly instructions: string | undefined
  readonly hasResources: boolean
  readonly hasPrompts: boolean
  /** The protocol of 2026: parameters may be wanted in headers. */
  readonly isModern: boolean
  /** As the server listed them last. */
  tools(): readonly ServerTool[]
  /** More there were than were looked at. */
  readonly listCut: boolean
  /** Resolves when no listing is under way: what the server announced with its last answer is then in `tools`. */
  settled(): Promise<void>
  /** These reject as the library does; `failures.ts` puts that in words. */
  call(tool: ServerTool, args: Readonly<Record<string, unknown>>, limits: CallLimits): Promise<CallToolResult>
  resources(cursor: string | undefined, limits: CallLimits): Promise<ListResourcesResult>
  resourceTemplates(limits: CallLimits): Promise<ListResourceTemplatesResult>
  readResource(uri: string, limits: CallLimits): Promise<ReadResourceResult>
  prompts(cursor: string | undefined, limits: CallLimits): Promise<ListPromptsResult>
  prompt(name: string, args: Readonly<Record<string, string>>, limits: CallLimits): Promise<GetPromptResult>
  /** Ends the session at the server, then the connection. Never rejects. */
  close(): Promise<void>
}

/** A transport, and how to tell the server that its session is over, where it has one. */
export interface Line {
  readonly transport: Transport
  goodbye?(): Promise<void>
  /** What a program wrote beside the protocol, the end of it: why it does not start often stands there. */
  said?(): string
}

interface Session {
  readonly client: Client
  readonly line: Line
  /** The program ended. */
  over: boolean
}

/** A program that did not come to speak the protocol, with what it said instead. */
export class ProgramFailed extends Error {
  constructor(said: string, cause: unknown) {
    super(said, { cause })
    this.name = 'ProgramFailed'
  }
}

/** `dial` is called anew where the server forgot the session. Rejects where there is no connection to be had. */
export async function connect(dial: () => Line, signal: AbortSignal): Promise<Connection> {
  let tools: readonly ServerTool[] = []
  let listCut = false
  let listing: Promise<void> | undefined
  let changed = false
  let relists = 0
  let session = await open()

  async function open(): Promise<Session> {
    try {
      return await handshake(dial(), 'auto')
    } catch (error) {
      // Some servers leave a question that they don't know without an answer; some programs end at it.
      const cause = error instanceof ProgramFailed ? error.cause : error
      if (!(cause instanceof SdkError) || !ASK_AGAIN.has(cause.code) || signal.aborted) throw error
      return handshake(dial(), 'legacy')
    }
  }

  async function handshake(line: Line, mode: 'auto' | 'legacy'): Promise<Session> {
    const client = new Client(CLIENT, {
      capabilities: {},
      versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
      // Output is for a model to judge, and a stranger's schema is not for us to compile.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: relist } },
    })
    // Whatever matters of an error also rejects the call it belongs to.
    client.onerror = () => {}
    try {
      await client.connect(line.transport, { timeout: CONNECT_MS, maxTotalTimeout: CONNECT_MS, signal })
    } catch (error) {
      await client.close().catch(() => {})
      const said = line.said?.().trim()
      throw said ? new ProgramFailed(said, error) : error
    }
    const opened: Session = { client, line, over: false }
    client.onclose = () => {
      opened.over = true
    }
    return opened
  }

  async function list(): Promise<void> {
    if (!session.client.getServerCapabilities()?.tools) return
    const found: ServerTool[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const params = cursor === undefined ? {} : { cursor }
      const options = { timeout: LIST_MS, signal }
      const page = await session.client.request({ method: 'tools/list', params }, options)
      found.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined && ++pages < MAX_PAGES && found.length < MAX_LISTED)
    tools = found.slice(0, MAX_LISTED)
    listCut = cursor !== undefined || found.length > MAX_LISTED
  }

  /** One listing at a time; a change that comes meanwhile is looked at by one more. */
  function relist(): void {
    changed = true
    listing ??= (async () => {
      while (changed && relists++ < MAX_RELISTS) {
        changed = false
        await list().catch(() => {})
      }
      listing = undefined
    })()
  }

  async function reopen(): Promise<void> {
    await session.client.close().catch(() => {})
    session = await open()
    await list()
  }

  /**
   * A server that was restarted does not know the session any more; it did nothing for a call in it. A program that ended
   * is started again for the next call, not for the one at which it ended.
   */
  async function inSession<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (session.over && !signal.aborted) await reopen()
    const { client } = session
    try {
      return await work(client)
    } catch (error) {
      if (!(error instanceof SdkHttpError) || error.status !== 404 || signal.aborted) throw error
      if (session.client === client) await reopen()
      return work(session.client)
    }
  }

  try {
    await list()
  } catch (error) {
    await session.client.close().catch(() => {})
    throw error
  }

  return {
    instructions: session.client.getInstructions(),
    hasResources: session.client.getServerCapabilities()?.resources !== undefined,
    hasPrompts: session.client.getServerCapabilities()?.prompts !== undefined,
    isModern: session.client.getProtocolEra() === 'modern',
    tools: () => tools,
    get listCut() {
      return listCut
    },
    async settled() {
      await listing
    },
    call: (tool, args, limits) =>
      inSession((client) =>
        client.callTool({ name: tool.name, arguments: args }, { ...options(limits), toolDefinition: tool }),
      ),
    resources: (cursor, limits) =>
      inSession((client) =>
        client.request({ method: 'resources/list', params: cursor === undefined ? {} : { cursor } }, options(limits)),
      ),
    resourceTemplates: (limits) =>
      inSession((client) => client.request({ method: 'resources/templates/list', params: {} }, options(limits))),
    readResource: (uri, limits) =>
      inSession((client) => client.request({ method: 'resources/read', params: { uri } }, options(limits))),
    prompts: (cursor, limits) =>
      inSession((client) =>
        client.request({ method: 'prompts/list', params: cursor === undefined ? {} : { cursor } }, options(limits)),
      ),
    prompt: (name, args, limits) =>
      inSession((client) =>
        client.request({ method: 'prompts/get', params: { name, arguments: args } }, options(limits)),
      ),
    async close() {
      const { client, line } = session
      const patience = new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref())
      await Promise.race([line.goodbye?.().catch(() => {}), patience])
      await Promise.race([client.close().catch(() => {}), patience])
    },
  }
}

function options({ signal, timeoutMs, onProgress }: CallLimits) {
  return { signal, timeout: timeoutMs, maxTotalTimeout: timeoutMs, onprogress: onProgress }
}
