/**
 * The network of a run's sandboxes. The guard's proxy runs outside. Inside, the runner listens and forwards to it, and
 * environment variables name that port. There is no other network: no resolver, no route. Each worker opens it again when it
 * creates or resumes a sandbox.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunSpec } from '../../domain/interaction.ts'
import { type Network, withinCeiling } from '../../domain/network.ts'
import type { OutboundConnectionKind } from '../../domain/outbound-connection.ts'
import type { ByteBudget, SandboxProxy } from '../../egress/port.ts'
import { type Sandbox, SandboxError } from '../../sandbox/port.ts'
import type { Claim } from '../../store/claim-row.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Auditor } from './auditor.ts'
import { createSignIn } from './network-credentials.ts'
import type { Redactor } from './redactor.ts'

const PORT = 3128
/** CA certificates for code in the sandbox. Hidden, so that code does not delete it by accident; it may change it. */
const TRUSTED = '/tmp/.errand/trusted.pem'
/** Retries while the listener of a dead worker still exists; it ends with that worker's connection. */
const LISTEN_TRIES = 50
const LISTEN_RETRY_MS = 100

export interface RunNetwork {
  /** Connects the main sandbox to the run's network. Throws SandboxError. */
  connect(sandbox: Sandbox): Promise<void>
  /** Connects another sandbox of the run to a network of its own. Throws SandboxError. */
  connectCompanion(sandbox: Sandbox, kind: OutboundConnectionKind, allowed: Network): Promise<void>
  /** A proxy for another sandbox of the run; all of them share the run's bytes. */
  openProxy(kind: OutboundConnectionKind, network: Network): SandboxProxy
  /** Ends every connection. Idempotent. */
  close(): void
}

export function createRunNetwork(
  { egress, limits, credentials }: Pick<EngineDependencies, 'egress' | 'limits' | 'credentials'>,
  { projectId }: Pick<Claim, 'projectId'>,
  { network }: RunSpec,
  { audit }: Auditor,
  { conceal }: Redactor,
): RunNetwork {
  const proxies = new Set<SandboxProxy>()
  const bytes = limits.networkBytes
  const budget: ByteBudget = {
    bytes,
    spent: `this run has used the ${bytes.toLocaleString('en-US')} bytes of its network.`,
  }
  let main: SandboxProxy | undefined

  function openProxy(kind: OutboundConnectionKind, asked: Network): SandboxProxy {
    // The ceiling may have been lowered since the run was accepted.
    const allowed = withinCeiling(asked, limits.network)
    const signIn = createSignIn(credentials, projectId, allowed, conceal)
    const proxy = egress.openProxy({ network: allowed, budget, onConnect: audit(kind), signIn })
    proxies.add(proxy)
    return proxy
  }

  async function plugIn(sandbox: Sandbox, proxy: SandboxProxy): Promise<void> {
    const trusted = egress.trusted() + (proxy.certificate ?? '')
    await sandbox.writeFile(TRUSTED, Buffer.from(trusted), 'write')
    await sandbox.setEnvironment(ENVIRONMENT)
    await listen(sandbox, PORT, proxy.handle)
  }

  return {
    openProxy,
    async connect(sandbox) {
      if (network === 'disabled') return
      main ??= openProxy('sandbox', network)
      await plugIn(sandbox, main)
    },
    async connectCompanion(sandbox, kind, allowed) {
      if (allowed !== 'disabled') await plugIn(sandbox, openProxy(kind, allowed))
    },
    close() {
      for (const proxy of proxies) proxy.close()
    },
  }
}

/** Listens in a sandbox, also if the listener of a dead worker still exists. Throws SandboxError. */
export async function listen(sandbox: Sandbox, port: number, handle: SandboxProxy['handle']): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await sandbox.listen(port, handle)
      return
    } catch (error) {
      if (!(error instanceof SandboxError && error.code === 'unavailable') || tries === LISTEN_TRIES) throw error
      await sleep(LISTEN_RETRY_MS)
    }
  }
}

const PROXY = `http://127.0.0.1:${PORT}`
const LOCAL = 'localhost,127.0.0.1,::1'

/** Proxy variables for common clients: curl, git, pip, requests, Node's fetch. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY,
  http_proxy: PROXY,
  HTTPS_PROXY: PROXY,
  https_proxy: PROXY,
  ALL_PROXY: PROXY,
  all_proxy: PROXY,
  NO_PROXY: LOCAL,
  no_proxy: LOCAL,
  NODE_USE_ENV_PROXY: '1',
  SSL_CERT_FILE: TRUSTED,
  REQUESTS_CA_BUNDLE: TRUSTED,
  CURL_CA_BUNDLE: TRUSTED,
  GIT_SSL_CAINFO: TRUSTED,
  PIP_CERT: TRUSTED,
  // pip reads an empty value as none.
  PIP_NO_INDEX: '',
  NODE_EXTRA_CA_CERTS: TRUSTED,
}
