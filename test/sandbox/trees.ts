/** Root directory trees for tests: script/rootfs builds each once, and they are kept. Needs root and Debian's archive. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const CACHE = '/var/cache/errand-tests'
export const ROOTFS = resolve(import.meta.dirname, '../../script/rootfs')

const run = promisify(execFile)

/** Resolves with an archive. The small tree has the programs that the sandbox tests need; the other one is what users get. */
export async function builtTree(form: 'small' | 'whole'): Promise<string> {
  const options = form === 'small' ? ['--only', 'procps'] : []
  const hash = createHash('sha256').update(readFileSync(ROOTFS)).update(options.join()).digest('hex').slice(0, 16)
  const tree = join(CACHE, `${form}-${hash}.tar`)
  if (existsSync(tree)) return tree
  mkdirSync(CACHE, { recursive: true })
  // Another test run that builds the same tree waits here and then finds it.
  const build = '[ -e "$0" ] || exec "$@" "$0"'
  await run('flock', [join(CACHE, form), 'sh', '-c', build, tree, ROOTFS, ...options])
  return tree
}
