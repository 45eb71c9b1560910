/**
 * Selects the server for a command that speaks HTTP. The first of these that exists:
 *
 *     --server  →  ERRAND_BASE_URL  →  a server running on the data directory  →  one in this process
 *
 * The last one listens on a free loopback port and accepts a key of its own. From here on all four are the same.
 */
import { createClient, type Errand, exitOf, NO_SERVER } from './client.ts'
import { type CliContext, Exit } from './context.ts'
import { createLog, quieter } from './log.ts'
import { findServer, type RunningServer } from './running-server.ts'
import { type ConfigOption, listen, loadConfig, startErrand } from './start.ts'

export interface ServerOptions extends ConfigOption {
  readonly server?: string
  readonly key?: string
}

/** `server` says in words which server the client speaks to, as the subject of a sentence. */
type Use<T> = (client: Errand, server: string) => Promise<T>

/** Runs `use` with a client. An error of the client becomes an Exit. */
export async function withClient<T>(context: CliContext, options: ServerOptions, use: Use<T>): Promise<T> {
  const { ERRAND_BASE_URL, ERRAND_API_KEY } = context.env
  const key = options.key || ERRAND_API_KEY
  if (options.server !== undefined) {
    return useServer(context, remote(context, '--server', options.server, key), at(options.server), use)
  }
  if (ERRAND_BASE_URL) {
    const server = remote(context, 'ERRAND_BASE_URL', ERRAND_BASE_URL, key)
    return useServer(context, server, `${at(ERRAND_BASE_URL)} (ERRAND_BASE_URL)`, use)
  }
  const config = loadConfig(context, options, NO_SERVER)
  const running = await findServer(config.dataDir)
  if (running === undefined) return inProcess(context, config, use)
  const server = { url: running.url, key: key || running.key }
  return useServer(context, server, `${at(running.url)}, which is running on ${config.dataDir},`, use)
}

async function useServer<T>(context: CliContext, server: RunningServer, description: string, use: Use<T>): Promise<T> {
  try {
    return await use(await createClient(server.url, server.key), description)
  } catch (error) {
    throw await exitOf(error, `${context.command} serve`)
  }
}

const at = (url: string) => `The server at ${url}`

function remote(context: CliContext, setting: string, url: string, key: string | undefined): RunningServer {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new Exit(2, `${setting} is ${JSON.stringify(url)}; it must be an address like http://127.0.0.1:8080.`)
  }
  if (!key) {
    throw new Exit(
      2,
      `The server at ${url} needs a key: give --key KEY or set ERRAND_API_KEY. \`${context.command} keys create --name NAME\` makes one.`,
    )
  }
  return { url, key }
}

async function inProcess<T>(context: CliContext, file: ReturnType<typeof loadConfig>, use: Use<T>): Promise<T> {
  const role = file.role === 'worker' ? 'all' : file.role
  const config = { ...file, role, host: '127.0.0.1', port: 0, publicUrl: undefined, tls: undefined } as const
  const log = createLog(quieter(config.log), context.err)
  const errand = await startErrand(config, { log, mode: 'one-shot', env: context.env }, NO_SERVER)
  try {
    const { url } = await listen(errand, config, NO_SERVER)
    const server = { url, key: await errand.accounts.temporaryKey('default') }
    return await useServer(context, server, `This process, as no server is running on ${config.dataDir},`, use)
  } finally {
    await errand.close(0)
  }
}
