/**
 * The TypeScript client of this repository, as the command line uses it. It is loaded when a command first calls a server:
 * `--help`, `keys` and `config` start without it. A checkout runs its source; script/build copies it into the package and
 * points the import below to the copy.
 */
import type { Errand } from '../../clients/typescript/src/index.ts'
import { Exit } from './context.ts'

export type {
  Credential,
  CredentialPatch,
  Errand,
  Interaction,
  InteractionRequest,
  NewAgent,
  NewCredential,
  StreamEvent,
} from '../../clients/typescript/src/index.ts'

export type JsonObject = Readonly<Record<string, unknown>>

const loadLibrary = () => import('../../clients/typescript/src/index.ts')

/** Exit code: the server could not be reached, or refused the call. */
export const NO_SERVER = 4

/** A large file on a slow uplink takes minutes. */
const TIMEOUT_MS = 600_000

/** Makes no call. A failed call is not repeated: the person at the terminal decides. Broken streams are resumed. */
export async function createClient(baseUrl: string, apiKey: string): Promise<Errand> {
  const { Errand } = await loadLibrary()
  return new Errand({ baseUrl, apiKey, maxRetries: 0, timeoutMs: TIMEOUT_MS })
}

/** Converts an error of the client into an Exit with a sentence for stderr. Returns any other error unchanged. */
export async function exitOf(error: unknown, startCommand: string): Promise<unknown> {
  const { ApiError, ConnectionError, ErrandError } = await loadLibrary()
  if (error instanceof ConnectionError) {
    return new Exit(NO_SERVER, `${error.message} Is the server running there? \`${startCommand}\` starts one.`)
  }
  if (error instanceof ApiError) {
    const { status, message, retryAfterS } = error
    const retry = retryAfterS === undefined ? '' : ` Try again after ${retryAfterS} s.`
    return new Exit(NO_SERVER, `The server refused (${status}): ${message}${retry}`)
  }
  return error instanceof ErrandError ? new Exit(2, error.message) : error
}
