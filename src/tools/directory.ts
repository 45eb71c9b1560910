/** Directory listings as text for the model. */
import { type Entry, type Listing, type Sandbox, SandboxError } from '../sandbox/port.ts'
import { truncateEnd } from './truncate.ts'

const MAX_ENTRIES = 1000
/** Enough for the model to find a name that it misspelled. */
const MAX_HINTS = 30

/** Returns undefined if `path` is not a directory. */
export async function describeDirectory(sandbox: Sandbox, path: string, maxBytes: number): Promise<string | undefined> {
  const listing = await listed(sandbox, path, MAX_ENTRIES)
  if (listing === undefined) return undefined
  const { entries, more } = listing
  if (entries.length === 0) return `\`${path}\` is an empty directory.`
  const count = more
    ? `more than ${entries.length} entries`
    : entries.length === 1
      ? '1 entry'
      : `${entries.length} entries`
  return truncateEnd(`[${path}: directory, ${count}]\n${entries.map(entryLine).join('\n')}`, maxBytes)
}

/** Lists the working directory for a model that asked for a file that does not exist. */
export async function describeWorkingDirectory(sandbox: Sandbox): Promise<string> {
  const { entries, more } = (await listed(sandbox, '.', MAX_HINTS)) ?? { entries: [], more: false }
  if (entries.length === 0) return 'The working directory is empty.'
  const names = entries.map((entry) => (entry.type === 'directory' ? `${entry.path}/` : entry.path))
  return `The working directory contains: ${names.join(', ')}${more ? ', …' : ''}.`
}

async function listed(sandbox: Sandbox, path: string, maxEntries: number): Promise<Listing | undefined> {
  try {
    return await sandbox.list(path, { recursive: false, maxEntries })
  } catch (error) {
    if (error instanceof SandboxError && !['unavailable', 'lost', 'stale'].includes(error.code)) return undefined
    throw error
  }
}

function entryLine(entry: Entry): string {
  if (entry.type === 'directory') return `${entry.path}/`
  return entry.type === 'file' ? `${entry.path} (${entry.size} bytes)` : `${entry.path} (link or special file)`
}
