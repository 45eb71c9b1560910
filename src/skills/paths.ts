/**
 * The names of a skill's files, wherever they come from: what passes here can be made below a directory of ours, means the
 * same on every file system, and is what it looks like.
 */

const MAX_PATH_BYTES = 1024
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 32

/** What no skill means to bring: left out without a word. */
const LITTER = new Set(['.git', '.svn', '.hg', '.DS_Store', '__MACOSX', '__pycache__', 'Thumbs.db'])

export function isLitter(path: string): boolean {
  return path.split('/').some((name) => LITTER.has(name))
}

/** The name, where it is UTF-8. */
export function decodeName(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Why it is no name of a file in a skill, as the rest of a sentence; undefined where it is one. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'is absolute'
  // Control characters, and those that turn the direction of writing: such a name is not what it looks like.
  if (/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(path)) return 'has a control character'
  if (path.includes('\\')) return 'has a backslash'
  const names = path.split('/')
  if (names.includes('..') || names.includes('.')) return 'has a part . or ..'
  if (names.includes('')) return 'has an empty part'
  if (names.length > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} folders`
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    return `has a part longer than ${MAX_NAME_BYTES} bytes`
  }
  return undefined
}

/** Two names that one file system would hold for the same, or a file where a folder of that name is needed. */
export function collisions(paths: readonly string[]): string[] {
  const problems: string[] = []
  const seen = new Map<string, string>()
  for (const path of paths) {
    const other = seen.get(folded(path))
    if (other !== undefined) {
      problems.push(
        other === path ? `${shown(path)} is there twice` : `${shown(other)} and ${shown(path)} differ in case alone`,
      )
    } else seen.set(folded(path), path)
  }
  const folders = new Set(paths.flatMap(foldersOf).map(folded))
  for (const path of paths) if (folders.has(folded(path))) problems.push(`${shown(path)} is a file and a folder`)
  return problems
}

/** For messages: names come from strangers. */
export function shown(path: string): string {
  const text = JSON.stringify(path)
  return text.length > 120 ? `${text.slice(0, 119)}…"` : text
}

function foldersOf(path: string): string[] {
  const names = path.split('/')
  return names.slice(1).map((_name, i) => names.slice(0, i + 1).join('/'))
}

function folded(path: string): string {
  return path.normalize('NFC').toLowerCase()
}
