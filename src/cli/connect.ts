/**
 * The way to a server for a command that speaks HTTP: the one at `--server`, or one of its own in this process, on a
 * free loopback port and with a key that this process alone accepts. Beyond here there is one way through.
 */
import { type Client, createClient, Refused, Unreachable } from './client.ts'
import { createLog, quieter } from './log.ts'
import { type ConfigOption, listen, loadConfig, startErrand } from './start.ts'
import { Exit, type Surroundings } from './surroundings.ts'

export interface ServerOptions extends ConfigOption {
  readonly server?: string
  readonly key?: string
}

/** Exit code: there is no server to speak to, or it said no. */
const NO_SERVER = 4

/** Runs `use` with a client. Refused and Unreachable become Exit. */
export async function withClient<T>(
  around: Surroundings,
  options: ServerOptions,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  try {
    return options.server === undefined ? await inProcess(around, options, use) : await use(remote(around, options))
  } catch (error) {
    if (error instanceof Unreachable) throw new Exit(NO_SERVER, unreachable(around, error, options))
    if (error instanceof Refused) throw new Exit(NO_SERVER, `The server refused (${error.status}): ${error.message}`)
    throw error
  }
}

function remote(around: Surroundings, { server, key }: ServerOptions): Client {
  if (!URL.canParse(server!) || !/^https?:$/.test(new URL(server!).protocol)) {
    throw new Exit(2, `--server is ${JSON.stringify(server)}; it must be an address like http://127.0.0.1:8080.`)
  }
  const secret = key ?? around.env.ERRAND_API_KEY
  if (!secret) {
    throw new Exit(
      2,
      `A server wants a key: give --key KEY or set ERRAND_API_KEY. \`${around.command} keys create --name NAME\` makes one.`,
    )
  }
  return createClient(server!, secret)
}

async function inProcess<T>(
  around: Surroundings,
  options: ServerOptions,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const file = loadConfig(around, options, NO_SERVER)
  const role = file.role === 'worker' ? 'all' : file.role
  const config = { ...file, role, host: '127.0.0.1', port: 0, publicUrl: undefined, tls: undefined } as const
  const log = createLog(quieter(config.log), around.err)
  const errand = await startErrand(config, { log, mode: 'one-shot', env: around.env }, NO_SERVER)
  try {
    const { url } = await listen(errand, config, NO_SERVER)
    return await use(createClient(url, await errand.accounts.temporaryKey('default')))
  } finally {
    await errand.close(0)
  }
}

function unreachable({ command }: Surroundings, error: Unreachable, { server }: ServerOptions): string {
  return server === undefined
    ? error.message
    : `${error.message} Is the server running there? \`${command} serve\` starts one.`
}
