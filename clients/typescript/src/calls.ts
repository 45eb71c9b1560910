/**
 * Builds API calls as data. Every path with an id is built here, where the id is checked: without an id the path is that of
 * the collection, so `retrieve(undefined)` would list and `cancel(undefined)` would create.
 */
import { ErrandError } from './errors.ts'
import type { OutputFile } from './generated/types.ts'
import type { Call } from './transport.ts'

const OBJECTS = {
  interactions: { argument: 'id', advice: "the interaction's id, for example int_0Wb1xYz3kJ9mQ2pR5sT7uV" },
  agents: { argument: 'id', advice: "the agent's id, for example analyst" },
  skills: { argument: 'name', advice: "the skill's name, for example pdf" },
  credentials: { argument: 'id', advice: "the credential's id, for example tracker" },
} as const

type Collection = keyof typeof OBJECTS

export function listCall(collection: Collection): Call {
  return { method: 'GET', path: `/v1beta/${collection}`, repeatable: true }
}

/**
 * Builds a GET of one object, or of the path `rest` below it. `method` is the client's method, as in `agents.retrieve`. Throws
 * ErrandError if `id` is missing, empty, not a string, or `.` or `..`, which URLs normalize away.
 */
export function objectCall(method: `${Collection}.${string}`, id: string, rest = ''): Call {
  const collection = method.split('.')[0] as Collection
  const { argument, advice } = OBJECTS[collection]
  const fault = faultOf(id)
  if (fault) throw new ErrandError(`${method}: ${argument} ${fault}; pass ${advice}.`)
  return { method: 'GET', path: `/v1beta/${collection}/${encodeURIComponent(id)}${rest}`, repeatable: true }
}

/** Builds the download of an output file. Throws ErrandError if `file` is missing or has no URL. */
export function fileCall(method: string, file: OutputFile): Call {
  if (typeof file?.url === 'string' && file.url !== '') return { method: 'GET', path: file.url, repeatable: true }
  throw new ErrandError(
    `files.${method}: file is missing, or has no url; pass an entry of the interaction's \`files\`.`,
  )
}

function faultOf(id: unknown): string | undefined {
  if (id === undefined || id === null) return 'is missing'
  if (typeof id !== 'string') return `is not a string but of type ${typeof id}`
  if (id.trim() === '') return 'is empty'
  return id === '.' || id === '..' ? `is ${JSON.stringify(id)}` : undefined
}
