/**
 * Names of MCP tools for the model: `server__tool`, in the characters and length that every provider accepts. A tool has the
 * same name in every run, because its suffix depends only on the tool.
 */
import { createHash } from 'node:crypto'

const MAX_CHARS = 64
const SUFFIX_CHARS = 6

/** The names that are in use in a run. */
export interface Names {
  /** Assigns a name. `exact`: the tool's own name was not changed. Returns undefined if the tool already has a name. */
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
