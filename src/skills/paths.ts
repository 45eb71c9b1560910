/**
 * Checks the names of a skill's files. A valid name can be created below a directory of ours, is unambiguous on every file
 * system, and has no characters that make it look like another name.
 */

const MAX_PATH_BYTES = 1024
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 32

/** Files that are ignored silently: version control, caches, and files that operating systems add. */
const IGNORED = new Set(['.git', '.svn', '.hg', '.DS_Store', '__MACOSX', '__pycache__', 'Thumbs.db'])

export function isIgnored(path: string): boolean {
  return path.split('/').some((name) => IGNORED.has(name))
}

/** Decodes a name; undefined if it is not UTF-8. */
export function decodeName(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** The reason why a path is not valid in a skill, as words that follow it; undefined if it is valid. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'is absolute'
  // Control characters, and those that change the writing direction, can make a name look like another.
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

/** Finds names that some file system treats as equal, and names that are both a file and a folder. */
export function collisions(paths: readonly string[]): string[] {
  const problems: string[] = []
  const seen = new Map<string, string>()
  for (const path of paths) {
    const other = seen.get(folded(path))
    if (other !== undefined) {
      problems.push(
        other === path ? `${shown(path)} occurs twice` : `${shown(other)} and ${shown(path)} differ only in case`,
      )
    } else seen.set(folded(path), path)
  }
  const folders = new Set(paths.flatMap(foldersOf).map(folded))
  for (const path of paths) if (folders.has(folded(path))) problems.push(`${shown(path)} is a file and a folder`)
  return problems
}

/** Quotes and shortens a path for messages, since names are untrusted. */
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
