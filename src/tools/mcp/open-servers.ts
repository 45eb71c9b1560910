/** A run's MCP servers: connected side by side, their tools put together, reported endSession at the end. */
import { type FetchLike, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { McpServerConfig } from '../../config.ts'
import { confidential, type OAuth2Secret, type Secret } from '../../domain/credential.ts'
import { approvalNeeded, type RunMcpServer, sealOwner } from '../../domain/mcp.ts'
import type { RunScope, Tool, ToolSource } from '../port.ts'
import { truncateEnd } from '../truncate.ts'
import { authorizingFetch } from './authorizing-fetch.ts'
import { type Connection, connect } from './connection.ts'
import { explainFailure } from './failures.ts'
import { createKeyedMutex, type KeyedMutex } from './keyed-mutex.ts'
import { operatorSecret } from './operator-secret.ts'
import { programTransports } from './program-transport.ts'
import type { McpOptions } from './provider.ts'
import { type ServerRules, showTools } from './server-tools.ts'
import { type CredentialHandle, type SignIn, SignInRefused, signInWith } from './sign-in.ts'
import { createNames } from './tool-names.ts'
import type { ServerTransport } from './transport.ts'

const MAX_INSTRUCTIONS_BYTES = 4_096
const CONNECT_MS = 15_000
/** Of one answer, also of a stream of events that stays open: the library reads an answer whole. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** A call may be silent for long, and has a time of its own. */
const IDLE_MS = 12 * 3_600_000
const SIGN_IN = { maxBytes: 1024 * 1024, timeoutMs: 15_000 }

interface Open {
  readonly connection: Connection
  readonly rules: ServerRules
}

/** What of a run its servers have to do with. Programs are its own alone. */
export type McpScope =
  | RunScope
  | (Pick<RunScope, 'interactionId' | 'projectId' | 'signal' | 'audit' | 'conceal' | 'warn'> & {
      readonly spec: Pick<RunScope['spec'], 'mcp'>
    })

/** Connects to the run's servers. Rejects with the run's signal alone. */
export async function openServers(options: McpOptions, renewals: KeyedMutex, run: McpScope): Promise<ToolSource> {
  // Outlives the run's own signal: a server is reported endSession after it.
  const connections = new AbortController()
  const opened = await Promise.all(
    run.spec.mcp.map((server) => openServer({ ...options, renewals, run, connections: connections.signal }, server)),
  ).catch((error) => {
    connections.abort()
    throw error
  })
  return sourceOf(
    opened.filter((each) => each !== undefined),
    run,
    connections,
  )
}

/** A provider's options, and the run that it was opened for. */
interface Opening extends McpOptions {
  readonly renewals: KeyedMutex
  readonly run: McpScope
  readonly connections: AbortSignal
}

async function openServer(opening: Opening, server: RunMcpServer): Promise<Open | undefined> {
  const { run, ...options } = opening
  const registered = server.url === undefined ? options.servers[server.name] : undefined
  try {
    // What can't be used was reported when the run was accepted.
    if (server.url === undefined && !registered) return undefined
    const dial =
      registered && 'command' in registered && 'openSandbox' in run
        ? await programTransports(run, server.name, registered, options.env)
        : await httpTransports(opening, server, registered && 'url' in registered ? registered : undefined)
    const connection = await connect(dial, run.signal)
    return { connection, rules: rulesOf(server, registered) }
  } catch (error) {
    if (run.signal.aborted) throw run.signal.reason
    const { sentence } = explainFailure(error, CONNECT_MS)
    run.warn({
      code: 'mcp_unavailable',
      param: 'mcp',
      message: `The MCP server ${server.name} can't be used, and the run goes on without it. ${sentence}`,
    })
    return undefined
  }
}

/** What the operator allows, and within it what the caller does. */
function rulesOf(server: RunMcpServer, registered: McpServerConfig | undefined): ServerRules {
  const lists = [server.allowedTools, registered?.allowedTools].filter((list) => list !== undefined)
  const approvals = [server.requireApproval, registered?.requireApproval].filter((list) => typeof list === 'object')
  // Written as the server has it, or as the model does: an approval must not be missed for its spelling.
  const spellings = (tool: string) => [tool, `${server.name}__${tool}`]
  return {
    name: server.name,
    allowed: (tool) => lists.every((list) => spellings(tool).some((name) => list.includes(name))),
    needsApproval: (tool) =>
      approvalNeeded(server.requireApproval, tool, server.preApproved) ||
      approvals.some((list) => spellings(tool).some((name) => list.includes(name))) ||
      approvalNeeded(registered?.requireApproval, tool),
    unmatched: (tools) => {
      const known = new Set(tools.flatMap(spellings))
      return [...new Set([...(server.allowedTools ?? []), ...approvals.flat()])].filter((name) => !known.has(name))
    },
  }
}

async function httpTransports(
  opening: Opening,
  server: RunMcpServer,
  registered: Extract<McpServerConfig, { url: string }> | undefined,
): Promise<() => ServerTransport> {
  const url = new URL(server.url ?? registered!.url)
  const { run, connections, fetchWith } = opening
  const terms = { signal: connections, onConnect: run.audit('mcp') }
  const plain = fetchWith({
    ...terms,
    maxBytes: MAX_ANSWER_BYTES,
    timeoutMs: Number.POSITIVE_INFINITY,
    idleMs: IDLE_MS,
  })
  const credential = await credentialOf(opening, server, registered)
  const signInFetch = withoutErrorText(fetchWith({ ...terms, ...SIGN_IN }))
  const { headers, authProvider, authorize }: SignIn = credential
    ? await signInWith(credential, url, signInFetch)
    : { headers: {} }
  const fetch = authorize ? authorizingFetch(authorize, url, plain, signInFetch, run.conceal) : plain
  return () => {
    const transport = new StreamableHTTPClientTransport(url, {
      fetch,
      authProvider,
      requestInit: { headers },
      onInsufficientScope: 'throw',
    })
    return { transport, endSession: () => transport.terminateSession() }
  }
}

/**
 * What a token endpoint says of a refusal may hold what it was sent, and the library puts it in its messages and on the
 * console: its code is let through alone.
 */
function withoutErrorText(fetch: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init)
    if (response.ok || init?.method !== 'POST') return response
    const body: unknown = await response.json().catch(() => undefined)
    const code = typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : ''
    const error = /^[a-z_]{1,60}$/.test(code) ? code : 'server_error'
    return Response.json({ error }, { status: response.status })
  }
}

/** The secret that a server is signed in to with; every form of it is concealed from then on. */
async function credentialOf(
  { credentials, unseal, env, renewals, run }: Opening,
  server: RunMcpServer,
  registered: Extract<McpServerConfig, { url: string }> | undefined,
): Promise<CredentialHandle | undefined> {
  if (registered?.authentication) return fixedCredential(run, operatorSecret(registered.authentication, env))
  const { authentication } = server
  if (authentication === undefined || authentication.type === 'none') return undefined
  if (!('credentialId' in authentication)) {
    return fixedCredential(
      run,
      JSON.parse(unseal(authentication.sealed, sealOwner(run.interactionId, server.name))) as Secret,
    )
  }
  const { credentialId: id } = authentication
  const { projectId } = run
  const found = await credentials.open(projectId, id)
  if (!found) throw new SignInRefused(`There is no credential ${JSON.stringify(id)}.`)
  let { version } = found
  const take = (secret: Secret) => {
    run.conceal(confidential(secret))
    return secret
  }
  const read = async () => {
    const current = await credentials.open(projectId, id)
    if (!current) throw new SignInRefused(`The credential ${JSON.stringify(id)} was deleted.`)
    version = current.version
    return take(current.secret)
  }
  return {
    read,
    async renew(secret: OAuth2Secret) {
      take(secret)
      const next = await credentials.renew(projectId, id, version, secret)
      if (next === undefined) return read()
      version = next
      return secret
    },
    allowedHosts: found.credential.allowedHosts,
    exclusively: renewals.of(`${projectId}/${id}`),
  }
}

/** Belongs to this run, or to the operator: a renewed one lives as long as the connection. */
function fixedCredential(run: Pick<RunScope, 'conceal'>, first: Secret): CredentialHandle {
  let secret = first
  run.conceal(confidential(secret))
  return {
    read: async () => secret,
    async renew(renewed) {
      secret = renewed
      run.conceal(confidential(secret))
      return secret
    },
    allowedHosts: undefined,
    exclusively: createKeyedMutex().of(''),
  }
}

function sourceOf(opened: readonly Open[], run: Pick<RunScope, 'warn'>, connections: AbortController): ToolSource {
  let seen: readonly unknown[] = []
  let tools: readonly Tool[] = []
  const reported = new Set<string>()

  /** Names are given anew with each change, in the same order: a tool that stays keeps its own. */
  function show(): void {
    const names = createNames()
    tools = opened.flatMap(({ connection, rules }) => {
      const shown = showTools(connection, rules, names)
      report(rules.name, shown.problems)
      return shown.tools
    })
  }

  function report(server: string, problems: readonly string[]): void {
    for (const problem of problems.slice(0, MAX_PROBLEMS)) {
      const message = `The MCP server ${server}: ${problem}`
      if (reported.size < MAX_PROBLEMS && !reported.has(message)) {
        reported.add(message)
        run.warn({ code: 'mcp_tools', param: 'mcp', message })
      }
    }
  }

  return {
    tools() {
      const now = opened.map(({ connection }) => connection.tools())
      if (now.length !== seen.length || now.some((list, i) => list !== seen[i])) {
        seen = now
        show()
      }
      return tools
    },
    about: aboutServers(opened),
    async close() {
      await Promise.all(opened.map(({ connection }) => connection.close()))
      connections.abort()
    },
  }
}

const MAX_PROBLEMS = 20

/** Said by the servers, and marked as that: a model should know whose words they are. */
function aboutServers(opened: readonly Open[]): string | undefined {
  const parts = opened.flatMap(({ connection: { instructions }, rules }) =>
    instructions
      ? [`The MCP server ${rules.name} says of its tools:\n${truncateEnd(instructions, MAX_INSTRUCTIONS_BYTES)}`]
      : [],
  )
  return parts.length > 0 ? parts.join('\n\n') : undefined
}
