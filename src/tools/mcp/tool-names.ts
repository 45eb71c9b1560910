/**
 * Names under which a server's tools stand before a model: `server__tool`, in the characters and length that every
 * provider takes. The same tool has the same name in every run, whatever else there is: a suffix hangs on it alone.
 */
import { createHash } from 'node:crypto'

const MAX_CHARS = 64
const SUFFIX_CHARS = 6

/** Names given out in a run. */
export interface Names {
  /** `exact`: nothing had to be changed but what the server's own name asks for. Undefined: this very pair has a name already. */
  give(server: string, tool: string): { readonly name: string; readonly exact: boolean } | undefined
}

export function createNames(): Names {
  const owners = new Map<string, string>()
  return {
    give(server, tool) {
      const owner = JSON.stringify([server, tool])
      const plain = `${clean(server)}__${clean(tool)}`
      const fits = plain.length <= MAX_CHARS && clean(tool) === tool
      const suffixed = `${plain.slice(0, MAX_CHARS - SUFFIX_CHARS - 1)}_${suffix(owner)}`
      for (const name of plain.length <= MAX_CHARS ? [plain, suffixed] : [suffixed]) {
        const taken = owners.get(name)
        if (taken === owner) return undefined
        if (taken !== undefined) continue
        owners.set(name, owner)
        return { name, exact: fits && name === plain }
      }
      return undefined
    },
  }
}

function clean(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

function suffix(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, SUFFIX_CHARS)
}
