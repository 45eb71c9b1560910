/** Directories in words. */
import { type Entry, type Sandbox, SandboxError } from '../sandbox/port.ts'
import { cutEnd } from './cut.ts'

const MAX_ENTRIES = 1000
/** Enough to find a misspelt name by. */
const MAX_HINTS = 30

/** Undefined where `path` can't be listed: it is no directory. */
export async function describeDirectory(sandbox: Sandbox, path: string, maxBytes: number): Promise<string | undefined> {
  const entries = await listed(sandbox, path, MAX_ENTRIES + 1)
  if (entries === undefined) return undefined
  if (entries.length === 0) return `\`${path}\` is an empty directory.`
  const more = entries.length > MAX_ENTRIES
  const count = more
    ? `more than ${MAX_ENTRIES} entries`
    : entries.length === 1
      ? '1 entry'
      : `${entries.length} entries`
  return cutEnd(`[${path}: directory, ${count}]\n${entries.slice(0, MAX_ENTRIES).map(entryLine).join('\n')}`, maxBytes)
}

/** What the working directory holds, for a model that asked for a file that is not there. */
export async function whatIsThere(sandbox: Sandbox): Promise<string> {
  const entries = await listed(sandbox, '.', MAX_HINTS + 1)
  if (entries === undefined || entries.length === 0) return 'The working directory is empty.'
  const names = entries.slice(0, MAX_HINTS).map((entry) => (entry.type === 'directory' ? `${entry.path}/` : entry.path))
  return `The working directory holds: ${names.join(', ')}${entries.length > MAX_HINTS ? ', …' : ''}.`
}

async function listed(sandbox: Sandbox, path: string, maxEntries: number): Promise<readonly Entry[] | undefined> {
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
