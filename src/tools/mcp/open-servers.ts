/** Connects a run to its MCP servers in parallel, combines their tools, and ends the sessions with the run. */
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
import { createRoom, type ServerRules, showTools } from './server-tools.ts'
import { type CredentialHandle, type SignIn, SignInRefused, signInWith } from './sign-in.ts'
import { createNames } from './tool-names.ts'
import type { ServerTransport } from './transport.ts'

const MAX_INSTRUCTIONS_BYTES = 4_096
const CONNECT_MS = 15_000
/** Maximum size of one answer, event streams included, because the library buffers the answer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** Long, because a call may be silent for long and has its own timeout. */
const IDLE_MS = 12 * 3_600_000
const SIGN_IN = { maxBytes: 1024 * 1024, timeoutMs: 15_000 }

interface Open {
  readonly connection: Connection
  readonly rules: ServerRules
}

/** The part of a run that MCP servers use. Programs need the whole run. */
export type McpScope =
  | RunScope
  | (Pick<RunScope, 'interactionId' | 'projectId' | 'signal' | 'audit' | 'conceal' | 'warn'> & {
      readonly spec: Pick<RunScope['spec'], 'mcp'>
    })

/** Connects to the run's servers. Rejects only if the run's signal aborts. */
export async function openServers(options: McpOptions, renewals: KeyedMutex, run: McpScope): Promise<ToolSource> {
  // Separate from the run's signal, because sessions are ended after it.
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

/** The provider's options, and the run that it is opened for. */
interface Opening extends McpOptions {
  readonly renewals: KeyedMutex
  readonly run: McpScope
  readonly connections: AbortSignal
}

async function openServer(opening: Opening, server: RunMcpServer): Promise<Open | undefined> {
  const { run, ...options } = opening
  const registered = server.url === undefined ? options.servers[server.name] : undefined
  try {
    // An unknown name became a warning when the run was accepted.
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
      message: `The MCP server ${server.name} can't be used, and the run continues without it. ${sentence}`,
    })
    return undefined
  }
}

/** Combines the rules of the caller and of the operator: the stricter one applies. */
function rulesOf(server: RunMcpServer, registered: McpServerConfig | undefined): ServerRules {
  const lists = [server.allowedTools, registered?.allowedTools].filter((list) => list !== undefined)
  const approvals = [server.requireApproval, registered?.requireApproval].filter((list) => typeof list === 'object')
  // With or without the server's prefix: an approval must not be missed because of the spelling.
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
 * A token endpoint's error text may repeat the secret that it was sent, and the library logs it and puts it in its messages.
 * So only the error code is kept.
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

/** The credential for a server. Every form of its secret is redacted from then on. */
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

/** A secret of this run or of the operator. A renewed one is kept for the length of the connection. */
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

  /** Assigns names again after each change, in the same order: a tool that stays keeps its name. */
  function show(): void {
    const names = createNames()
    const room = createRoom()
    tools = opened.flatMap(({ connection, rules }) => {
      const shown = showTools(connection, rules, names, room)
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

/** The servers' own instructions, marked as such, so that the model knows their source. */
function aboutServers(opened: readonly Open[]): string | undefined {
  const parts = opened.flatMap(({ connection: { instructions }, rules }) =>
    instructions
      ? [
          `Instructions of the MCP server ${rules.name} for its tools:\n${truncateEnd(instructions, MAX_INSTRUCTIONS_BYTES)}`,
        ]
      : [],
  )
  return parts.length > 0 ? parts.join('\n\n') : undefined
}
