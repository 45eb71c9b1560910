/**
 * The connection to one MCP server for the length of one run. It reopens the session when the server lost it, and bounds
 * everything that a hostile server could make endless: pages, answers, waiting times, list changes.
 *
 *   connecting ──▶ ready ──list_changed──▶ listing ──▶ ready … ──▶ closed
 */
import {
  type CallToolResult,
  type Client,
  type GetPromptResult,
  type ListPromptsResult,
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  type Progress,
  type ReadResourceResult,
  SdkHttpError,
  type Tool as ServerTool,
} from '@modelcontextprotocol/client'
import { openSession, type Session } from './session.ts'
import { createToolList, type ToolList } from './tool-list.ts'
import type { ServerTransport } from './transport.ts'

/** Short, because the cancellation of a run waits for it. */
const END_SESSION_MS = 500

export interface CallLimits {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly onProgress?: (progress: Progress) => void
}

export interface Connection {
  readonly instructions: string | undefined
  readonly hasResources: boolean
  readonly hasPrompts: boolean
  /** The 2026 protocol, in which a tool may require parameters in HTTP headers. */
  readonly isModern: boolean
  /** The tools as the server listed them last. */
  tools(): readonly ServerTool[]
  /** The server has more tools than were read. */
  readonly listTruncated: boolean
  /** Resolves when no listing is running: changes that the server announced are then in `tools`. */
  settled(): Promise<void>
  /** These calls reject with the library's errors; `explainFailure` turns them into text. */
  call(tool: ServerTool, args: Readonly<Record<string, unknown>>, limits: CallLimits): Promise<CallToolResult>
  resources(cursor: string | undefined, limits: CallLimits): Promise<ListResourcesResult>
  resourceTemplates(limits: CallLimits): Promise<ListResourceTemplatesResult>
  readResource(uri: string, limits: CallLimits): Promise<ReadResourceResult>
  prompts(cursor: string | undefined, limits: CallLimits): Promise<ListPromptsResult>
  prompt(name: string, args: Readonly<Record<string, string>>, limits: CallLimits): Promise<GetPromptResult>
  /** Ends the session at the server, then the connection. Never rejects. */
  close(): Promise<void>
}

/** `dial` makes a transport; it is called again when the session must be reopened. Rejects if the server can't be reached. */
export async function connect(dial: () => ServerTransport, signal: AbortSignal): Promise<Connection> {
  let session: Session
  const list: ToolList = createToolList(() => session.client, signal)
  const open = () => openSession(dial, list.refresh, signal)
  session = await open()

  /** The reopening under way: several calls may find the session lost. */
  let reopening: Promise<void> | undefined

  async function replaceSession(): Promise<void> {
    const lost = session
    session = await open()
    // Closed last: its other calls may still get their own answers, and then go on in the new session.
    await lost.client.close().catch(() => {})
    await list.fetch()
  }

  function reopen(): Promise<void> {
    reopening ??= replaceSession().finally(() => {
      reopening = undefined
    })
    return reopening
  }

  /**
   * Runs a request in a live session. A 404 means that the server restarted and did nothing, so the request is sent again.
   * A program that exited is started again before the next request; the request at which it exited is not repeated.
   */
  async function inSession<T>(request: (client: Client) => Promise<T>): Promise<T> {
    if (session.closed && !signal.aborted) await reopen()
    const { client } = session
    try {
      return await request(client)
    } catch (error) {
      if (!(error instanceof SdkHttpError) || error.status !== 404 || signal.aborted) throw error
      if (session.client === client) await reopen()
      return request(session.client)
    }
  }

  try {
    await list.fetch()
  } catch (error) {
    await session.client.close().catch(() => {})
    throw error
  }

  return {
    instructions: session.client.getInstructions(),
    hasResources: session.client.getServerCapabilities()?.resources !== undefined,
    hasPrompts: session.client.getServerCapabilities()?.prompts !== undefined,
    isModern: session.client.getProtocolEra() === 'modern',
    tools: () => list.tools,
    get listTruncated() {
      return list.truncated
    },
    settled: list.settled,
    ...requests(inSession),
    close: () => close(session),
  }
}

type InSession = <T>(request: (client: Client) => Promise<T>) => Promise<T>

function requests(inSession: InSession) {
  const page = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor })
  return {
    call: (tool, args, limits) =>
      inSession((client) =>
        client.callTool({ name: tool.name, arguments: args }, { ...options(limits), toolDefinition: tool }),
      ),
    resources: (cursor, limits) =>
      inSession((client) => client.request({ method: 'resources/list', params: page(cursor) }, options(limits))),
    resourceTemplates: (limits) =>
      inSession((client) => client.request({ method: 'resources/templates/list', params: {} }, options(limits))),
    readResource: (uri, limits) =>
      inSession((client) => client.request({ method: 'resources/read', params: { uri } }, options(limits))),
    prompts: (cursor, limits) =>
      inSession((client) => client.request({ method: 'prompts/list', params: page(cursor) }, options(limits))),
    prompt: (name, args, limits) =>
      inSession((client) =>
        client.request({ method: 'prompts/get', params: { name, arguments: args } }, options(limits)),
      ),
  } satisfies Partial<Connection>
}

async function close({ client, transport }: Session): Promise<void> {
  const timeout = new Promise((resolve) => setTimeout(resolve, END_SESSION_MS).unref())
  await Promise.race([transport.endSession?.().catch(() => {}), timeout])
  await Promise.race([client.close().catch(() => {}), timeout])
}

function options({ signal, timeoutMs, onProgress }: CallLimits) {
  return { signal, timeout: timeoutMs, maxTotalTimeout: timeoutMs, onprogress: onProgress }
}
