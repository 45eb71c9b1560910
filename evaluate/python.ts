/** Runs Python of a model on this machine, for graders: in a sandbox of bubblewrap without network and without files. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

const TIMEOUT_MS = 60_000
const QUOTED_CHARACTERS = 300
const SANDBOX = [
  ...['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib'],
  ...['--symlink', 'usr/lib64', '/lib64', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
  ...['--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--chdir', '/project'],
]

/**
 * Runs `python3` with the arguments in a directory with these files. Returns the end of its error output if it fails;
 * undefined if it ends with 0.
 */
export function runPython(files: ReadonlyMap<string, string>, args: readonly string[]): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'errand-evaluate-'))
  try {
    for (const [name, content] of files) {
      const path = resolve(folder, name)
      if (!path.startsWith(`${folder}/`)) return `${name} is outside the project`
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    }
    const python = ['python3', '-B', '-s', ...args]
    const { status, stderr, error } = spawnSync('bwrap', [...SANDBOX, '--ro-bind', folder, '/project', ...python], {
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
    })
    if (status === 0) return undefined
    return `${error?.message ?? ''}${stderr}`.trim().slice(-QUOTED_CHARACTERS) || 'it did not end with 0'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The files below `prefix/`, without the prefix. */
export function below(prefix: string, files: ReadonlyMap<string, string>): Map<string, string> {
  const inside = [...files].filter(([name]) => name.startsWith(`${prefix}/`))
  return new Map(inside.map(([name, content]) => [name.slice(prefix.length + 1), content]))
}
